/**
 * VolumeSnapshots and the contents that stand for them, as external-snapshotter's snapshot-controller writes them: names,
 * finalizers, the content of a new snapshot, and what a snapshot's status says of its content.
 */

import { type DeepReadonly, formatTime } from '@coracle/apimachinery/meta/object';
import { isDeleting } from '@coracle/apimachinery/meta/object-state';
import type { PersistentVolume, PersistentVolumeClaim } from '@coracle/apimachinery/types/types';
import type { VolumeSnapshot, VolumeSnapshotClass, VolumeSnapshotContent } from '../volume-snapshot/kinds.ts';
import { modeOf } from './match-volume.ts';
import { bytesText } from './provision-plan.ts';

type Snapshot = DeepReadonly<VolumeSnapshot>;
type Content = DeepReadonly<VolumeSnapshotContent>;
type Class = DeepReadonly<VolumeSnapshotClass>;

const PREFIX = 'snapshot.storage.kubernetes.io/';
/** On a VolumeSnapshot while volumes are made from it. */
export const AS_SOURCE = `${PREFIX}volumesnapshot-as-source-protection`;
/** On a VolumeSnapshot that has a content. */
export const SNAPSHOT_BOUND = `${PREFIX}volumesnapshot-bound-protection`;
export const CONTENT_BOUND = `${PREFIX}volumesnapshotcontent-bound-protection`;
/** On a claim while it is being snapshotted. */
export const CLAIM_AS_SOURCE = `${PREFIX}pvc-as-source-protection`;
/** On a content whose VolumeSnapshot is being deleted. */
export const BEING_DELETED = `${PREFIX}volumesnapshot-being-deleted`;
/** On a content from before the storage is asked until it has answered. */
export const BEING_CREATED = `${PREFIX}volumesnapshot-being-created`;
const IS_DEFAULT = `${PREFIX}is-default-class`;

/** `POOL/HANDLE`: what `snapshotHandle` of a VolumeSnapshotContent holds. */
export const snapshotHandleIn = (pool: string, handle: string): string => `${pool}/${handle}`;

/** Pool and handle of a `snapshotHandle`; undefined for one that is not ours. */
export function poolOfHandle(snapshotHandle: string | undefined): { pool: string; handle: string } | undefined {
  const [pool = '', handle = '', ...more] = (snapshotHandle ?? '').split('/');
  return pool === '' || handle === '' || more.length > 0 ? undefined : { pool, handle };
}

/** Name of the content that a snapshot has, or will have. */
export const contentNameOf = ({ metadata, spec, status }: Snapshot): string =>
  spec.source.volumeSnapshotContentName ?? status?.boundVolumeSnapshotContentName ?? `snapcontent-${metadata.uid}`;

/** True when the content is this very snapshot's; one that waits for a snapshot of that name is not yet. */
export const isContentOf = ({ spec }: Content, { metadata }: Snapshot): boolean =>
  spec.volumeSnapshotRef.namespace === metadata.namespace &&
  spec.volumeSnapshotRef.name === metadata.name &&
  spec.volumeSnapshotRef.uid === metadata.uid;

/** The default class of a driver. Throws Error when there is none, or more than one. */
export function defaultSnapshotClass(classes: readonly Class[], driver: string): Class {
  const found = classes.filter((one) => one.driver === driver && one.metadata.annotations?.[IS_DEFAULT] === 'true');
  if (found.length === 1) return found[0]!;
  throw new Error(
    found.length === 0
      ? `cannot find default snapshot class for driver ${driver}`
      : `${found.length} default snapshot classes were found for driver ${driver}`,
  );
}

/** The content of a snapshot that is to be taken of the volume. */
export function contentFor(
  snapshot: Snapshot,
  { storageClass, volume }: { readonly storageClass: Class; readonly volume: DeepReadonly<PersistentVolume> },
): VolumeSnapshotContent {
  const { namespace = '', name = '', uid = '', resourceVersion = '' } = snapshot.metadata;
  return {
    apiVersion: 'snapshot.storage.k8s.io/v1',
    kind: 'VolumeSnapshotContent',
    metadata: { name: `snapcontent-${uid}`, finalizers: [CONTENT_BOUND] },
    spec: {
      volumeSnapshotRef: {
        apiVersion: 'snapshot.storage.k8s.io/v1',
        kind: 'VolumeSnapshot',
        namespace,
        name,
        uid,
        resourceVersion,
      },
      source: { volumeHandle: volume.spec?.csi?.volumeHandle ?? '' },
      driver: storageClass.driver,
      deletionPolicy: storageClass.deletionPolicy,
      volumeSnapshotClassName: storageClass.metadata.name ?? '',
      sourceVolumeMode: modeOf(volume),
    },
  };
}

/** The snapshot's status as its content has it. */
export function statusFrom(snapshot: Snapshot, content: Content): NonNullable<VolumeSnapshot['status']> {
  const { creationTime, restoreSize, readyToUse = false, error } = content.status ?? {};
  const { error: _, ...before } = snapshot.status ?? {};
  return {
    ...before,
    boundVolumeSnapshotContentName: content.metadata.name ?? '',
    readyToUse,
    ...(creationTime !== undefined && { creationTime: formatTime(Math.floor(Number(creationTime) / 1e6)) }),
    ...(restoreSize !== undefined && { restoreSize: bytesText(restoreSize) }),
    ...(error && !readyToUse && { error: { ...error } }),
  };
}

/** Why no snapshot can be taken of the claim now; undefined when it can. */
export function unfit(
  name: string,
  claim: DeepReadonly<PersistentVolumeClaim> | undefined,
  volume: DeepReadonly<PersistentVolume> | undefined,
): string | undefined {
  if (!claim) return `persistentvolumeclaim "${name}" not found`;
  if (isDeleting(claim)) return `the PVC ${name} is being deleted`;
  if (claim.status?.phase !== 'Bound' || !volume)
    return `the PVC ${name} is not yet bound to a PV, will not attempt to take a snapshot`;
  return volume.spec?.csi
    ? undefined
    : `the volume ${volume.metadata.name} of the PVC ${name} is not one of a CSI driver`;
}
