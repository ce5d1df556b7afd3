/** What the controllers of this room read: one cache for each kind, and the look-ups they share. */

import type { ReadonlyObject } from '@coracle/apimachinery/meta/object';
import { PERSISTENT_VOLUME_CLAIMS, PODS, STORAGE_CLASSES } from '@coracle/apimachinery/types/resource-types';
import type { PersistentVolumeClaim, Pod, StorageClass } from '@coracle/apimachinery/types/types';
import type { Informer } from '@coracle/client/informer/informer';
import type { InformerSet } from '@coracle/client/informer/informer-set';
import {
  VOLUME_SNAPSHOT_CLASSES,
  VOLUME_SNAPSHOTS,
  type VolumeSnapshot,
  type VolumeSnapshotClass,
} from '@coracle/cluster-rules/volume-snapshot/kinds';
import {
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINE_SNAPSHOT_CONTENTS,
  VIRTUAL_MACHINE_SNAPSHOTS,
  VIRTUAL_MACHINES,
  type VirtualMachine,
  type VirtualMachineInstance,
  type VirtualMachineSnapshot,
  type VirtualMachineSnapshotContent,
} from '../../kinds/kubevirt.ts';
import { type ClassChoice, chooseSnapshotClass } from '../../rules/snapshot/snapshot-class.ts';

export interface SnapshotStores {
  readonly snapshots: Informer<VirtualMachineSnapshot>;
  readonly contents: Informer<VirtualMachineSnapshotContent>;
  readonly vms: Informer<VirtualMachine>;
  readonly vmis: Informer<VirtualMachineInstance>;
  readonly claims: Informer<PersistentVolumeClaim>;
  readonly pods: Informer<Pod>;
  readonly storageClasses: Informer<StorageClass>;
  readonly volumeSnapshots: Informer<VolumeSnapshot>;
  readonly snapshotClasses: Informer<VolumeSnapshotClass>;
  /** The class that takes snapshots of claims of a storage class. */
  snapshotClassOf(storageClass: string): ClassChoice;
}

/** Index of snapshots: `namespace/name` of their source. */
export const BY_SOURCE = 'source';

export function snapshotStores(informers: InformerSet): SnapshotStores {
  const snapshots = informers.of(VIRTUAL_MACHINE_SNAPSHOTS);
  const storageClasses = informers.of(STORAGE_CLASSES);
  const snapshotClasses = informers.of(VOLUME_SNAPSHOT_CLASSES);
  snapshots.addIndex(BY_SOURCE, ({ metadata, spec }) => [`${metadata.namespace}/${spec.source.name}`]);
  return {
    snapshots,
    contents: informers.of(VIRTUAL_MACHINE_SNAPSHOT_CONTENTS),
    vms: informers.of(VIRTUAL_MACHINES),
    vmis: informers.of(VIRTUAL_MACHINE_INSTANCES),
    claims: informers.of(PERSISTENT_VOLUME_CLAIMS),
    pods: informers.of(PODS),
    storageClasses,
    volumeSnapshots: informers.of(VOLUME_SNAPSHOTS),
    snapshotClasses,
    snapshotClassOf: (name) => chooseSnapshotClass(storageClasses.get({ namespace: '', name }), snapshotClasses.list()),
  };
}

/** `namespace/name`, as in upstream's messages. */
export const textOf = ({ metadata }: ReadonlyObject): string => `${metadata.namespace}/${metadata.name}`;
