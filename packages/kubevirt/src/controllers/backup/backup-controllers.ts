/** The controllers of backups as one component. */
import type { PolicyRule } from '@coracle/apimachinery/types/access-types';
import type { AskAgent } from '@coracle/client/controller/ask-agent';
import type { ControllerEnvironment, Runnable } from '@coracle/client/controller/environment';
import { createEventRecorder } from '@coracle/client/events/recorder';
import { createBackupController } from './backup-controller.ts';
import { backupStores } from './backup-stores.ts';
import { createTrackerController } from './tracker-controller.ts';
import { createTrackingController } from './tracking-controller.ts';

/** Rights the controllers need, and no others. */
export const backupControllerRules: readonly PolicyRule[] = [
  {
    apiGroups: ['backup.kubevirt.io'],
    resources: ['virtualmachinebackups', 'virtualmachinebackuptrackers'],
    verbs: ['get', 'list', 'watch', 'patch'],
  },
  {
    apiGroups: ['backup.kubevirt.io'],
    resources: ['virtualmachinebackups/status', 'virtualmachinebackuptrackers/status'],
    verbs: ['patch'],
  },
  {
    apiGroups: ['kubevirt.io'],
    resources: ['virtualmachines', 'virtualmachineinstances'],
    verbs: ['get', 'list', 'watch', 'patch'],
  },
  {
    apiGroups: ['kubevirt.io'],
    resources: ['virtualmachines/status', 'virtualmachineinstances/status'],
    verbs: ['patch'],
  },
  { apiGroups: ['kubevirt.io'], resources: ['kubevirts'], verbs: ['get', 'list', 'watch'] },
  { apiGroups: [''], resources: ['persistentvolumeclaims', 'namespaces', 'nodes'], verbs: ['get', 'list', 'watch'] },
  { apiGroups: ['subresources.kubevirt.io'], resources: ['virtualmachineinstances/backup'], verbs: ['update'] },
  { apiGroups: [''], resources: ['events'], verbs: ['create', 'patch'] },
];

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
