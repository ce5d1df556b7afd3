/** VirtualMachineRestore: brings a virtual machine back to a snapshot, or makes one from it (snapshot.kubevirt.io). */
import type { Static } from 'typebox';
import { atomicList, bool, needed, object, oneOf, str, stringMap, strings, time } from './fields.ts';
import { snapshotConditions, typedLocalReference } from './snapshot.ts';

export const TARGET_READINESS_POLICIES = ['StopTarget', 'WaitGracePeriod', 'FailImmediate', 'WaitEventually'] as const;
export const VOLUME_RESTORE_POLICIES = ['RandomizeNames', 'InPlace', 'PrefixTargetName'] as const;
export const VOLUME_OWNERSHIP_POLICIES = ['Vm', 'None'] as const;

const volumeRestoreOverride = object('How one volume is restored.', {
  volumeName: str('Name of the volume in the snapshot.'),
  restoreName: str('Name of the restored claim.'),
  labels: stringMap('Labels of the restored claim.'),
  annotations: stringMap('Annotations of the restored claim.'),
});

export const restoreSpec = object('What is to be restored, and how.', {
  target: needed(typedLocalReference('The virtual machine; made when there is none.')),
  virtualMachineSnapshotName: needed(str('The snapshot.')),
  targetReadinessPolicy: oneOf(TARGET_READINESS_POLICIES, 'What happens while the target runs.', {
    enforced: true,
    default: 'WaitGracePeriod',
  }),
  volumeRestorePolicy: oneOf(VOLUME_RESTORE_POLICIES, 'How restored claims are named; RandomizeNames when absent.'),
  volumeOwnershipPolicy: oneOf(VOLUME_OWNERSHIP_POLICIES, 'Who owns restored claims; Vm when absent.'),
  volumeRestoreOverrides: atomicList(volumeRestoreOverride, 'How single volumes are restored.'),
  patches: atomicList(str('JSON patch, one operation.'), 'Changes of a target that is made.'),
});

const volumeRestore = object('One restored volume.', {
  volumeName: needed(str('Name of the volume.')),
  persistentVolumeClaim: needed(str('Name of the restored claim.')),
  volumeSnapshotName: needed(str('VolumeSnapshot that holds the data.')),
  dataVolumeName: str('DataVolume of the restored claim.'),
});

export const restoreStatus = object('What is known of the restore.', {
  restores: atomicList(volumeRestore, 'The restored volumes.'),
  restoreTime: time('When it was complete.'),
  deletedDataVolumes: strings('DataVolumes that were replaced.', { 'x-kubernetes-list-type': 'set' }),
  complete: bool('It has ended well.'),
  conditions: snapshotConditions,
});

export type RestoreSpec = Static<typeof restoreSpec>;
export type RestoreStatus = Static<typeof restoreStatus>;
export type VolumeRestore = Static<typeof volumeRestore>;
