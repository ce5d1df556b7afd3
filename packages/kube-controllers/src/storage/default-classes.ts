/** The classes of a fresh server: volumes and snapshots in the pools of its nodes. */

import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import type { StorageClass } from '@coracle/apimachinery/types/types';
import { POOL_DRIVER } from '@coracle/cluster-rules/storage/pool-names';
import type { VolumeSnapshotClass } from '@coracle/cluster-rules/volume-snapshot/kinds';

export const DEFAULT_CLASS = 'storageclass.kubernetes.io/is-default-class';
export const DEFAULT_SNAPSHOT_CLASS = 'snapshot.storage.kubernetes.io/is-default-class';

const storageClass = (
  name: string,
  binding: 'Immediate' | 'WaitForFirstConsumer',
  isDefault: boolean,
): StorageClass => ({
  apiVersion: 'storage.k8s.io/v1',
  kind: 'StorageClass',
  metadata: { name, ...(isDefault && { annotations: { [DEFAULT_CLASS]: 'true' } }) },
  provisioner: POOL_DRIVER,
  parameters: { format: 'qcow2' },
  reclaimPolicy: 'Delete',
  allowVolumeExpansion: true,
  volumeBindingMode: binding,
});

/**
 * StorageClass `local`, which is the default unless `hasDefault` says that there is one already; `local-wait`, whose
 * volumes are made where their first Pod goes; VolumeSnapshotClass `local`.
 */
export function defaultClasses(hasDefault: boolean): readonly UnstructuredObject[] {
  const snapshots: VolumeSnapshotClass = {
    apiVersion: 'snapshot.storage.k8s.io/v1',
    kind: 'VolumeSnapshotClass',
    metadata: { name: 'local', annotations: { [DEFAULT_SNAPSHOT_CLASS]: 'true' } },
    driver: POOL_DRIVER,
    deletionPolicy: 'Delete',
  };
  const objects = [
    storageClass('local', 'Immediate', !hasDefault),
    storageClass('local-wait', 'WaitForFirstConsumer', false),
    snapshots,
  ];
  return objects as unknown as readonly UnstructuredObject[];
}
