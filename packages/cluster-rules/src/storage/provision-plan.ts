/**
 * What a claim of a class of ours asks a pool for, and the PersistentVolume that stands for the answer (what
 * external-provisioner makes of CSI's CreateVolume).
 */

import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { formatQuantity, quantityFromBytes } from '@coracle/apimachinery/quantity/quantity';
import type { PersistentVolume, PersistentVolumeClaim, StorageClass } from '@coracle/apimachinery/types/types';
import { classNameOf } from '@coracle/apimachinery/types/volume-claims';
import { modeOf, requestOf } from './match-volume.ts';
import type { CreateVolume, VolumeFormat, VolumeMade } from './pool-calls.ts';
import { POOL_ATTRIBUTE, POOL_DRIVER, POOL_LABEL } from './pool-names.ts';
import { PROVISIONED_BY } from './volume-step.ts';

type Claim = DeepReadonly<PersistentVolumeClaim>;
type Class = DeepReadonly<StorageClass>;

/** Holds a volume back until its content is gone from the pool. */
export const PROVISIONER_FINALIZER = 'external-provisioner.volume.kubernetes.io/finalizer';

/** Annotation of a claim that is filled before it is bound, by the controller of its DataVolume (CDI). */
export const USE_POPULATOR = 'cdi.kubevirt.io/storage.usePopulator';

/** Annotation of a claim that is filled with what somebody sends, before it is bound (CDI); its value says nothing. */
export const UPLOAD_TARGET = 'cdi.kubevirt.io/storage.upload.target';

/** True for a claim whose volume its DataVolume or an upload makes; one with a source of its own is made as any other. */
export const isLeftToPopulator = (claim: Claim): boolean =>
  (claim.metadata.annotations?.[USE_POPULATOR] === 'true' || isUploadTarget(claim)) && sourceOf(claim).type === 'none';

export const isUploadTarget = ({ metadata }: Claim): boolean => metadata.annotations?.[UPLOAD_TARGET] !== undefined;

/** Where the content of a claim comes from: a claim or a VolumeSnapshot of its namespace. */
export type ClaimSource =
  | { readonly type: 'none' }
  | { readonly type: 'snapshot' | 'claim'; readonly name: string }
  /** Somebody else fills it, or nobody can: no volume is made here. */
  | { readonly type: 'other'; readonly kind: string }
  | { readonly type: 'refused'; readonly message: string };

/** Reads `dataSourceRef`, or `dataSource` of old. */
export function sourceOf({ metadata, spec }: Claim): ClaimSource {
  const reference = spec?.dataSourceRef ?? spec?.dataSource;
  if (!reference) return { type: 'none' };
  const { apiGroup, kind, name } = reference;
  const { namespace = metadata.namespace } = reference as { namespace?: string };
  if (namespace !== metadata.namespace)
    return { type: 'refused', message: 'a dataSourceRef into another namespace is not supported' };
  if (kind === 'PersistentVolumeClaim' && (apiGroup ?? '') === '') return { type: 'claim', name };
  if (kind === 'VolumeSnapshot' && apiGroup === 'snapshot.storage.k8s.io') return { type: 'snapshot', name };
  return { type: 'other', kind };
}

/** Format that the class says; qcow2 when it says nothing. Undefined for what is none. */
export function formatOf(storageClass: Class | undefined): VolumeFormat | undefined {
  const format = storageClass?.parameters?.['format'] ?? 'qcow2';
  return format === 'raw' || format === 'qcow2' ? format : undefined;
}

/** Name of the volume that is made for a claim. */
export const volumeNameFor = ({ metadata }: Claim): string => `pvc-${metadata.uid}`;

/** The call that makes the content. */
export const createCall = (claim: Claim, format: VolumeFormat, source: CreateVolume['source']): CreateVolume => ({
  handle: claim.metadata.uid ?? '',
  bytes: requestOf(claim),
  mode: modeOf(claim),
  format,
  ...(source && { source }),
  // A crash before the volume object is written leaves content that nobody knows of: the sweeper finds it by this.
  provisional: true,
});

export const bytesText = (bytes: number): string => formatQuantity(quantityFromBytes(bytes));

export interface VolumePlace {
  readonly pool: string;
  readonly made: VolumeMade;
  readonly reclaimPolicy: 'Delete' | 'Retain';
}

/** The volume object: kept for this very claim, reached from the nodes of its pool. */
export function volumeObject(claim: Claim, { pool, made, reclaimPolicy }: VolumePlace): PersistentVolume {
  const { namespace, name, uid, resourceVersion } = claim.metadata;
  const storageClassName = classNameOf(claim);
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: {
      name: volumeNameFor(claim),
      annotations: { [PROVISIONED_BY]: POOL_DRIVER },
      ...(reclaimPolicy === 'Delete' && { finalizers: [PROVISIONER_FINALIZER] }),
    },
    spec: {
      capacity: { storage: bytesText(made.bytes) },
      accessModes: [...(claim.spec?.accessModes ?? [])],
      claimRef: {
        apiVersion: 'v1',
        kind: 'PersistentVolumeClaim',
        ...(namespace !== undefined && { namespace }),
        ...(name !== undefined && { name }),
        ...(uid !== undefined && { uid }),
        ...(resourceVersion !== undefined && { resourceVersion }),
      },
      persistentVolumeReclaimPolicy: reclaimPolicy,
      ...(storageClassName !== '' && { storageClassName }),
      volumeMode: modeOf(claim),
      csi: {
        driver: POOL_DRIVER,
        volumeHandle: made.handle,
        volumeAttributes: { [POOL_ATTRIBUTE]: pool, format: made.format },
      },
      nodeAffinity: {
        required: {
          nodeSelectorTerms: [{ matchExpressions: [{ key: POOL_LABEL, operator: 'In', values: [pool] }] }],
        },
      },
    },
  };
}

/** Pool and handle of a volume of ours; undefined for any other. */
export function placeOf({ spec }: DeepReadonly<PersistentVolume>): { pool: string; handle: string } | undefined {
  if (spec?.csi?.driver !== POOL_DRIVER) return undefined;
  const attributes = spec.csi['volumeAttributes'] as Readonly<Record<string, string>> | undefined;
  const pool = attributes?.[POOL_ATTRIBUTE];
  return pool === undefined ? undefined : { pool, handle: spec.csi.volumeHandle };
}
