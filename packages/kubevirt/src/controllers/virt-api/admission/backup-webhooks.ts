/** The webhooks about backups and their trackers. */
import {
  VIRTUAL_MACHINE_BACKUP_TRACKERS,
  VIRTUAL_MACHINE_BACKUPS,
  type VirtualMachineBackup,
  type VirtualMachineBackupTracker,
} from '../../../kinds/kubevirt.ts';
import { validateNewBackup, validateNewTracker, validateUnchangedBackup } from './validate-backup.ts';
import { type ValidatingWebhook, validating } from './webhook.ts';

export const BACKUP_WEBHOOKS: readonly ValidatingWebhook[] = [
  validating<VirtualMachineBackup>(
    {
      name: 'virtualmachinebackup-validator.backup.kubevirt.io',
      path: '/virtualmachinebackups-validate',
      type: VIRTUAL_MACHINE_BACKUPS,
      operations: ['CREATE', 'UPDATE'],
    },
    ({ object, old, context, client, namespace }) =>
      old === undefined
        ? validateNewBackup(object, context, { client, namespace })
        : validateUnchangedBackup(object.spec, old.spec),
  ),
  validating<VirtualMachineBackupTracker>(
    {
      name: 'virtualmachinebackuptracker-validator.backup.kubevirt.io',
      path: '/virtualmachinebackuptrackers-validate',
      type: VIRTUAL_MACHINE_BACKUP_TRACKERS,
      operations: ['CREATE', 'UPDATE'],
    },
    ({ object, old, context }) =>
      old === undefined ? validateNewTracker(object, context) : validateUnchangedBackup(object.spec, old.spec),
  ),
];
