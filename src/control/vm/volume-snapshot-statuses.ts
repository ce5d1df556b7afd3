/** Which volumes of a machine can be snapshotted, in upstream's words (pkg/storage/snapshot, getVolumeSnapshotStatus): pure. */
import type { PersistentVolumeClaim } from '../../api/kinds/builtin/types.ts';
import type { VirtualMachine } from '../../api/kinds/kubevirt/kubevirt.ts';
import { deepEqual } from '../../api/meta/deep-equal.ts';
import type { DeepReadonly } from '../../api/meta/object.ts';

type Volume = NonNullable<NonNullable<DeepReadonly<VirtualMachine>['spec']['template']['spec']>['volumes']>[number];
type Claim = DeepReadonly<PersistentVolumeClaim>;

/** The claim behind a volume that a snapshot could hold; undefined for volumes of other kinds. */
export const snapshottableClaim = ({ persistentVolumeClaim, dataVolume, memoryDump }: Volume): string | undefined =>
  persistentVolumeClaim?.claimName ?? dataVolume?.name ?? memoryDump?.claimName;

/** Writes `status.volumeSnapshotStatuses`. Nothing here takes snapshots of claims, so no volume is enabled; each says why. */
export function applyVolumeSnapshotStatuses(vm: VirtualMachine, claimOf: (name: string) => Claim | undefined): void {
  const volumes: readonly Volume[] = vm.spec.template?.spec?.volumes ?? [];
  const namespace = vm.metadata.namespace ?? '';
  const reasonOf = (volume: Volume): string => {
    const name = snapshottableClaim(volume);
    if (name === undefined) return `Snapshot is not supported for this volumeSource type [${volume.name}]`;
    const claim = claimOf(name);
    if (claim === undefined) return `PVC ${namespace}/${name} not found`;
    const storageClass = claim.spec?.storageClassName ?? '';
    return `No VolumeSnapshotClass: Volume snapshots are not configured for this StorageClass [${storageClass}] [${volume.name}]`;
  };
  const statuses = volumes.map((volume) => ({ name: volume.name, enabled: false, reason: reasonOf(volume) }));
  vm.status ??= {};
  if (statuses.length === 0) delete vm.status.volumeSnapshotStatuses;
  else if (!deepEqual(vm.status.volumeSnapshotStatuses, statuses)) vm.status.volumeSnapshotStatuses = statuses;
}
