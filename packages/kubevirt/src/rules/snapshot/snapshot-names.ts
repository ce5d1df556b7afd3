/** Names, labels and finalizers of snapshots and restores, as upstream writes them. */

import type { ReadonlySnapshot } from '../../kinds/kubevirt.ts';

/** Holds a snapshot until its source is unlocked and its content gone or kept. */
export const SNAPSHOT_FINALIZER = 'snapshot.kubevirt.io/vmsnapshot-protection';
/** Holds a content until the guest is thawed. */
export const CONTENT_FINALIZER = 'snapshot.kubevirt.io/vmsnapshotcontent-protection';
/** Holds a virtual machine while a snapshot is taken of it. */
export const SOURCE_FINALIZER = 'snapshot.kubevirt.io/snapshot-source-protection';
/** Holds a restore until its target is released. */
export const RESTORE_FINALIZER = 'snapshot.kubevirt.io/vmrestore-protection';

/** Labels of a VolumeSnapshot: the virtual machine it was taken of. */
export const SOURCE_NAME_LABEL = 'snapshot.kubevirt.io/source-vm-name';
export const SOURCE_NAMESPACE_LABEL = 'snapshot.kubevirt.io/source-vm-namespace';

/** The content of a snapshot. */
export const contentNameOf = ({ metadata, status }: ReadonlySnapshot): string =>
  status?.virtualMachineSnapshotContentName ?? `vmsnapshot-content-${metadata.uid}`;

/** The VolumeSnapshot of one volume of a snapshot. */
export const volumeSnapshotName = (snapshotUid: string, volume: string): string =>
  `vmsnapshot-${snapshotUid}-volume-${volume}`;
