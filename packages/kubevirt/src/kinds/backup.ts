/** VirtualMachineBackup and VirtualMachineBackupTracker: copies of the disks of a running machine (backup.kubevirt.io). */
import type { Static } from 'typebox';
import { atomicList, bool, duration, keyedList, needed, object, oneOf, str, time } from './fields.ts';
import { typedLocalReference } from './snapshot.ts';

export const BACKUP_MODES = ['Push', 'Pull'] as const;
export const BACKUP_TYPES = ['Full', 'Incremental'] as const;

/** A condition of meta/v1, all of whose members are there. */
const backupCondition = object('One observed aspect.', {
  type: needed(str('Aspect.')),
  status: needed(oneOf(['True', 'False', 'Unknown'], 'True, False or Unknown.')),
  lastTransitionTime: needed(time('When the status last changed.')),
  reason: needed(str('Reason in one word.')),
  message: needed(str('Details for people.')),
});

export const backupSpec = object('What is backed up, and where to.', {
  source: needed(typedLocalReference('A VirtualMachine, or a VirtualMachineBackupTracker of one.')),
  mode: oneOf(BACKUP_MODES, 'Who moves the data; Push when absent.', { enforced: true }),
  pvcName: str('Claim that receives the backup.'),
  skipQuiesce: bool('The file systems of the guest are not frozen.'),
  forceFullBackup: bool('All data, also where a checkpoint is known.'),
  tokenSecretRef: str('Pull mode: Secret with the token.'),
  ttlDuration: duration('Pull mode: how long the backup is offered.'),
});

export const backupStatus = object('What is known of the backup.', {
  startTimestamp: time('When it began.'),
  conditions: keyedList(backupCondition, ['type'], 'Observed aspects.'),
  checkpointName: str('Checkpoint that this backup made.'),
  endpointCert: str('Pull mode: CA of the endpoint.'),
  includedVolumes: atomicList(
    object('One volume.', {
      volumeName: needed(str('Name of the volume in the instance.')),
      dataEndpoint: str('Pull mode: where the data is.'),
      mapEndpoint: str('Pull mode: where the map is.'),
      type: oneOf(BACKUP_TYPES, 'All data, or what has changed.', { enforced: true }),
    }),
    'Volumes in the backup.',
  ),
  exportUID: str('Pull mode: UID of the export.'),
});

export const backupTrackerSpec = object('Whose backups build on one another.', {
  source: needed(typedLocalReference('The virtual machine.')),
});

export const backupTrackerStatus = object('What is known of the latest backup.', {
  latestCheckpoint: object('The checkpoint that the next backup builds on.', {
    name: str('Its name.'),
    creationTime: time('When it was made.'),
  }),
  checkpointRedefinitionRequired: bool('The checkpoint has to be given to a restarted instance.'),
});

export type BackupSpec = Static<typeof backupSpec>;
export type BackupStatus = Static<typeof backupStatus>;
export type BackupTrackerSpec = Static<typeof backupTrackerSpec>;
export type BackupTrackerStatus = Static<typeof backupTrackerStatus>;
