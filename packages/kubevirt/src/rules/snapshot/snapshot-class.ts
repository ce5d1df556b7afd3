/** Which VolumeSnapshotClass takes snapshots of a claim. */

import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import type { StorageClass } from '@coracle/apimachinery/types/types';
import type { VolumeSnapshotClass } from '@coracle/cluster-rules/volume-snapshot/kinds';

type SnapshotClass = DeepReadonly<VolumeSnapshotClass>;

const DEFAULT_ANNOTATION = 'snapshot.storage.kubernetes.io/is-default-class';

/** Found: a class, or none; or why none can be chosen. */
export type ClassChoice =
  | { readonly type: 'class'; readonly name: string; readonly driver: string }
  | { readonly type: 'none' }
  | { readonly type: 'unclear'; readonly message: string };

/** The class of the driver that provisions the storage class; of several the one that is marked as the default. */
export function chooseSnapshotClass(
  storageClass: DeepReadonly<StorageClass> | undefined,
  classes: readonly SnapshotClass[],
): ClassChoice {
  if (storageClass === undefined) return { type: 'none' };
  const matches = classes.filter(({ driver }) => driver === storageClass.provisioner);
  const chosen =
    matches.length > 1
      ? matches.find(({ metadata }) => metadata.annotations?.[DEFAULT_ANNOTATION] !== undefined)
      : matches[0];
  if (chosen !== undefined) return { type: 'class', name: chosen.metadata.name ?? '', driver: chosen.driver };
  if (matches.length === 0) return { type: 'none' };
  const name = storageClass.metadata.name;
  return { type: 'unclear', message: `${matches.length} matching VolumeSnapshotClasses for ${name}` };
}
