/** The claim that a restore makes from a VolumeSnapshot (kubevirt pkg/storage/snapshot, CreateRestorePVCDef). */

import type { DeepReadonly, ObjectKey, OwnerReference, ReadonlyObject } from '@coracle/apimachinery/meta/object';
import { exceeds, readQuantity } from '@coracle/apimachinery/quantity/quantity';
import type { PersistentVolumeClaim } from '@coracle/apimachinery/types/types';
import { SNAPSHOT_STORAGE_GROUP, type VolumeSnapshot } from '@coracle/cluster-rules/volume-snapshot/kinds';
import type { ReadonlyRestore, SourceVirtualMachine, VolumeBackup } from '../../kinds/kubevirt.ts';
import { STATE_LABEL } from '../backend-storage/backend-storage.ts';

export const RESTORE_NAME_ANNOTATION = 'restore.kubevirt.io/name';
/** The restore that made a claim, or brought a machine back last. */
export const LAST_RESTORE_ANNOTATION = 'restore.kubevirt.io/lastRestoreUID';
/** The DataVolume that shall take a claim for its own, filled as it is (CDI). */
export const POPULATED_FOR_ANNOTATION = 'cdi.kubevirt.io/storage.populatedFor';
const SOURCE_NAME_LABEL = 'restore.kubevirt.io/source-vm-name';
const SOURCE_NAMESPACE_LABEL = 'restore.kubevirt.io/source-vm-namespace';

/** Annotations that belong to the claim they were written on. */
const NOT_COPIED = [
  'pv.kubernetes.io',
  'volume.beta.kubernetes.io',
  'cdi.kubevirt.io',
  'volume.kubernetes.io',
  'k8s.io/CloneRequest',
  'k8s.io/CloneOf',
];

const markOf = ({ metadata }: ReadonlyRestore): string => `${metadata.name}-${metadata.uid}`;

/** Whether this very restore made a claim, or brought a machine back. */
export const isMarked = (object: ReadonlyObject, restore: ReadonlyRestore): boolean =>
  object.metadata.annotations?.[LAST_RESTORE_ANNOTATION] === markOf(restore);

/** The annotations with the mark of a restore. */
export const marked = (
  annotations: Readonly<Record<string, string>> | undefined,
  restore: ReadonlyRestore,
): Record<string, string> => ({ ...annotations, [LAST_RESTORE_ANNOTATION]: markOf(restore) });

export interface RestoredClaim {
  readonly restore: ReadonlyRestore;
  readonly name: string;
  readonly backup: DeepReadonly<VolumeBackup>;
  readonly snapshot: DeepReadonly<VolumeSnapshot>;
  readonly machine: DeepReadonly<SourceVirtualMachine> | undefined;
  /** The DataVolume that takes it over; `owner` otherwise. */
  readonly dataVolume: string | undefined;
  readonly owner: OwnerReference | undefined;
}

/** The claim to create: as it was saved, at least as large as the snapshot asks for, filled from it. */
export function restoredClaim(of: RestoredClaim): PersistentVolumeClaim {
  const { restore, name, backup, snapshot, machine, dataVolume, owner } = of;
  const override = restore.spec.volumeRestoreOverrides?.find(({ volumeName }) => volumeName === backup.volumeName);
  const claim = claimFromSnapshot({ namespace: restore.metadata.namespace ?? '', name }, { backup, snapshot });
  return {
    ...claim,
    metadata: {
      ...claim.metadata,
      labels: {
        ...claim.metadata.labels,
        [SOURCE_NAME_LABEL]: machine?.metadata?.name ?? '',
        [SOURCE_NAMESPACE_LABEL]: machine?.metadata?.namespace ?? '',
        ...override?.labels,
      },
      annotations: {
        ...marked(claim.metadata.annotations, restore),
        [RESTORE_NAME_ANNOTATION]: restore.metadata.name ?? '',
        ...override?.annotations,
        ...(dataVolume !== undefined && { [POPULATED_FOR_ANNOTATION]: dataVolume }),
      },
      ...(dataVolume === undefined && owner && { ownerReferences: [owner] }),
    },
  };
}

/** A claim with the content of a VolumeSnapshot: as it was saved, at least as large as the snapshot asks for. */
export function claimFromSnapshot(
  { namespace, name }: ObjectKey,
  { backup, snapshot }: Pick<RestoredClaim, 'backup' | 'snapshot'>,
): PersistentVolumeClaim {
  const { metadata, spec } = backup.persistentVolumeClaim;
  const { [STATE_LABEL]: _, ...labels } = metadata?.labels ?? {};
  const annotations = Object.fromEntries(
    Object.entries(metadata?.annotations ?? {}).filter(([key]) => !NOT_COPIED.some((prefix) => key.startsWith(prefix))),
  );
  const source = { apiGroup: SNAPSHOT_STORAGE_GROUP, kind: 'VolumeSnapshot', name: backup.volumeSnapshotName ?? '' };
  const { accessModes, resources, storageClassName, volumeMode } = spec ?? {};
  const asked = resources?.requests?.['storage'];
  const least = snapshot.status?.restoreSize;
  const storage = least !== undefined && !covers(asked, least) ? least : asked;
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name, namespace, labels, annotations },
    spec: {
      ...(accessModes && { accessModes: [...accessModes] }),
      resources: {
        ...(resources?.limits && { limits: { ...resources.limits } }),
        requests: { ...resources?.requests, ...(storage !== undefined && { storage }) },
      },
      ...(storageClassName !== undefined && { storageClassName }),
      ...(volumeMode !== undefined && { volumeMode }),
      dataSource: source,
      dataSourceRef: source,
    },
  };
}

function covers(asked: unknown, least: string): boolean {
  const amount = readQuantity(asked);
  return amount !== undefined && !exceeds(readQuantity(least), amount);
}
