/** What the controllers of this room read: one cache for each kind, and the look-ups they share. */
import { PERSISTENT_VOLUME_CLAIMS, PODS, STORAGE_CLASSES } from '../../api/kinds/builtin/resource-types.ts';
import type { PersistentVolumeClaim, Pod, StorageClass } from '../../api/kinds/builtin/types.ts';
import {
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINE_SNAPSHOT_CONTENTS,
  VIRTUAL_MACHINE_SNAPSHOTS,
  VIRTUAL_MACHINES,
  type VirtualMachine,
  type VirtualMachineInstance,
  type VirtualMachineSnapshot,
  type VirtualMachineSnapshotContent,
} from '../../api/kinds/kubevirt/kubevirt.ts';
import {
  VOLUME_SNAPSHOT_CLASSES,
  VOLUME_SNAPSHOTS,
  type VolumeSnapshot,
  type VolumeSnapshotClass,
} from '../../api/kinds/volume-snapshot/kinds.ts';
import type { DeepReadonly, KubeObject } from '../../api/meta/object.ts';
import type { Informer } from '../../client/informer/informer.ts';
import type { InformerSet } from '../../client/informer/informer-set.ts';
import { type ClassChoice, chooseSnapshotClass } from '../../domain/snapshot/snapshot-class.ts';

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
export const textOf = ({ metadata }: DeepReadonly<KubeObject>): string => `${metadata.namespace}/${metadata.name}`;
