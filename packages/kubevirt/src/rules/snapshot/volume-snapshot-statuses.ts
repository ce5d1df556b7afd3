/** Which volumes of a machine can be snapshotted, in upstream's words (pkg/storage/snapshot, getVolumeSnapshotStatus). */

import type { ReadonlyClaim } from '@coracle/apimachinery/types/types';
import type { ReadonlyVm, VirtualMachine } from '../../kinds/kubevirt.ts';
import { snapshottableClaim, volumesOf } from './saved-volumes.ts';
import type { ClassChoice } from './snapshot-class.ts';

type Statuses = NonNullable<NonNullable<VirtualMachine['status']>['volumeSnapshotStatuses']>;

export interface SnapshotSupport {
  /** A claim of the machine's namespace. */
  claim(name: string): ReadonlyClaim | undefined;
  /** The VolumeSnapshotClass for claims of a storage class. */
  snapshotClass(storageClass: string): ClassChoice;
}

/** `status.volumeSnapshotStatuses` of a machine: an entry for each volume; those that cannot be snapshotted say why. */
export function volumeSnapshotStatuses(vm: ReadonlyVm, support: SnapshotSupport): Statuses {
  const namespace = vm.metadata.namespace ?? '';
  const obstacle = (volume: ReturnType<typeof volumesOf>[number]): string | undefined => {
    const name = snapshottableClaim(volume);
    if (name === undefined) return `Snapshot is not supported for this volumeSource type [${volume.name}]`;
    const claim = support.claim(name);
    if (claim === undefined) return `PVC ${namespace}/${name} not found`;
    const storageClass = claim.spec?.storageClassName ?? '';
    const choice = support.snapshotClass(storageClass);
    if (choice.type === 'class') return undefined;
    if (choice.type === 'unclear') return choice.message;
    return `No VolumeSnapshotClass: Volume snapshots are not configured for this StorageClass [${storageClass}] [${volume.name}]`;
  };
  return volumesOf(vm).map((volume) => {
    const reason = obstacle(volume);
    return { name: volume.name, enabled: reason === undefined, ...(reason !== undefined && { reason }) };
  });
}
