/** The controllers of backups as one component. */
import { policyRules } from '@coracle/apimachinery/types/policy-rules';
import type { AskAgent } from '@coracle/client/controller/ask-agent';
import type { ControllerEnvironment, Runnable } from '@coracle/client/controller/environment';
import { createEventRecorder } from '@coracle/client/events/recorder';
import { createBackupController } from './backup-controller.ts';
import { backupStores } from './backup-stores.ts';
import { createTrackerController } from './tracker-controller.ts';
import { createTrackingController } from './tracking-controller.ts';

/** Rights the controllers need, and no others. */
export const backupControllerRules = policyRules(
  'get list watch patch : backup.kubevirt.io : virtualmachinebackups virtualmachinebackuptrackers',
  'patch : backup.kubevirt.io : virtualmachinebackups/status virtualmachinebackuptrackers/status',
  'get list watch patch : kubevirt.io : virtualmachines virtualmachineinstances',
  'patch : kubevirt.io : virtualmachines/status virtualmachineinstances/status',
  'get list watch : kubevirt.io : kubevirts',
  'get list watch : core : persistentvolumeclaims namespaces nodes',
  'update : subresources.kubevirt.io : virtualmachineinstances/backup',
  'create patch : core : events',
);

/** Makes all of them; nothing happens before `start`. */
export function createBackupControllers(
  environment: ControllerEnvironment & { readonly askAgent: AskAgent },
): Runnable {
  const { client, clock, log, askAgent } = environment;
  const stores = backupStores(environment);
  const events = createEventRecorder(client, { component: 'virtualmachine-controller', clock, log });
  const parts = [
    createBackupController({ client, clock, log, stores, events }),
    createTrackingController({ client, clock, log, stores }),
    createTrackerController({ client, clock, log, stores, askAgent }),
  ];
  return {
    name: 'backup',
    start: async (signal) => void (await Promise.all(parts.map((part) => part.start(signal)))),
  };
}
