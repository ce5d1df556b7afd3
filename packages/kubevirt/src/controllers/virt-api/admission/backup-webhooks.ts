/** The webhooks about backups and their trackers. */
import { VIRTUAL_MACHINE_BACKUP_TRACKERS, VIRTUAL_MACHINE_BACKUPS } from '../../../kinds/kubevirt.ts';
import { validateNewBackup, validateNewTracker, validateUnchangedBackup } from './validate-backup.ts';
import { type ValidatingWebhook, validating } from './webhook.ts';

export const BACKUP_WEBHOOKS: readonly ValidatingWebhook[] = [
  validating(
    VIRTUAL_MACHINE_BACKUPS,
    'CREATE UPDATE : virtualmachinebackup-validator.backup.kubevirt.io : /virtualmachinebackups-validate',
    ({ object, old, context, client, namespace }) =>
      old === undefined
        ? validateNewBackup(object, context, { client, namespace })
        : validateUnchangedBackup(object.spec, old.spec),
  ),
  validating(
    VIRTUAL_MACHINE_BACKUP_TRACKERS,
    'CREATE UPDATE : virtualmachinebackuptracker-validator.backup.kubevirt.io : /virtualmachinebackuptrackers-validate',
    ({ object, old, context }) =>
      old === undefined ? validateNewTracker(object, context) : validateUnchangedBackup(object.spec, old.spec),
  ),
];
