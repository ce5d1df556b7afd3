import { isDeleting } from '@coracle/apimachinery/meta/object-state';
import { type Controller, createController, ownKeys, source } from '@coracle/client/controller/controller';
import { isBackupDone } from '../../rules/backup/backup-conditions.ts';

import { type BackupControllerOptions, BackupSteps } from './backup-steps.ts';

/** Makes the controller; nothing happens before `start`. */
export function createBackupController(options: BackupControllerOptions): Controller {
  const steps = new BackupSteps(options);
  return createController({
    ...options,
    name: 'backup',
    concurrency: 4,
    sources: [
      ownKeys(steps.stores.backups),
      source(steps.stores.vmis, ({ metadata }) => steps.ofMachine(metadata)),
      source(steps.stores.trackers, ({ metadata, spec }) => steps.ofMachine({ ...metadata, name: spec.source.name })),
    ],
    reconcile: async (key) => {
      const backup = steps.stores.backups.get(key);
      if (!backup) return;
      if (isDeleting(backup) || isBackupDone(backup.status)) return steps.end(backup);
      return backup.status?.startTimestamp === undefined ? steps.start(backup) : steps.goOn(backup);
    },
  });
}
