/** Names that storage classes, volumes, snapshots and nodes carry for volumes in a pool of ours. */

/** CSI driver of PersistentVolumes and VolumeSnapshotContents, and provisioner of the classes, that a pool serves. */
export const POOL_DRIVER = 'local.coracle.dev';

/** Label of a Node: the id of the pool that its agent serves. Agents of one data directory share a pool. */
export const POOL_LABEL = 'topology.coracle.dev/pool';

/** Member of `spec.csi.volumeAttributes` of a volume, and of a snapshot's handle: the pool it lies in. */
export const POOL_ATTRIBUTE = 'pool';

/** VolumeSnapshots with one value of this annotation in a namespace are taken at one point in time. */
export const SNAPSHOT_GROUP = 'coracle.dev/snapshot-group';

/** How many VolumeSnapshots the group has; none is taken before all of them exist. */
export const SNAPSHOT_GROUP_SIZE = 'coracle.dev/snapshot-group-size';
