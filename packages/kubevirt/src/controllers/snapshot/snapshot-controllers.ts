/** The controllers of snapshots and restores, as one component. */

import type { ControllerEnvironment, Runnable } from '@coracle/client/controller/environment';
import { createEventRecorder } from '@coracle/client/events/recorder';
import { VIRTUAL_MACHINE_RESTORES } from '../../kinds/kubevirt.ts';
import { createContentController } from './content-controller.ts';
import { createRestoreController } from './restore-controller.ts';
import { createSnapshotController } from './snapshot-controller.ts';
import { snapshotStores } from './snapshot-stores.ts';
import { createVolumeStatusesController } from './volume-statuses-controller.ts';

const READ = ['get', 'list', 'watch'];

/** Rights the controllers need, and no others. */
export const snapshotControllerRules = [
  {
    apiGroups: ['snapshot.kubevirt.io'],
    resources: ['virtualmachinesnapshots', 'virtualmachinerestores'],
    verbs: [...READ, 'patch'],
  },
  {
    apiGroups: ['snapshot.kubevirt.io'],
    resources: ['virtualmachinesnapshotcontents'],
    verbs: [...READ, 'create', 'patch', 'delete'],
  },
  {
    apiGroups: ['snapshot.kubevirt.io'],
    resources: [
      'virtualmachinesnapshots/status',
      'virtualmachinesnapshotcontents/status',
      'virtualmachinerestores/status',
    ],
    verbs: ['patch'],
  },
  // What blocks its owner's deletion takes this right on the owner.
  {
    apiGroups: ['snapshot.kubevirt.io'],
    resources: [
      'virtualmachinesnapshots/finalizers',
      'virtualmachinesnapshotcontents/finalizers',
      'virtualmachinerestores/finalizers',
    ],
    verbs: ['update'],
  },
  { apiGroups: ['kubevirt.io'], resources: ['virtualmachines'], verbs: [...READ, 'create', 'patch'] },
  { apiGroups: ['kubevirt.io'], resources: ['virtualmachines/status'], verbs: ['patch'] },
  { apiGroups: ['kubevirt.io'], resources: ['virtualmachines/finalizers'], verbs: ['update'] },
  { apiGroups: ['kubevirt.io'], resources: ['virtualmachineinstances'], verbs: READ },
  {
    apiGroups: ['subresources.kubevirt.io'],
    resources: ['virtualmachineinstances/freeze', 'virtualmachineinstances/unfreeze', 'virtualmachines/stop'],
    verbs: ['update'],
  },
  { apiGroups: ['subresources.kubevirt.io'], resources: ['virtualmachines/expand-spec'], verbs: ['get'] },
  { apiGroups: [''], resources: ['persistentvolumeclaims'], verbs: [...READ, 'create', 'patch', 'delete'] },
  { apiGroups: [''], resources: ['pods'], verbs: READ },
  { apiGroups: ['storage.k8s.io'], resources: ['storageclasses'], verbs: READ },
  { apiGroups: ['snapshot.storage.k8s.io'], resources: ['volumesnapshots'], verbs: [...READ, 'create'] },
  { apiGroups: ['snapshot.storage.k8s.io'], resources: ['volumesnapshotclasses'], verbs: READ },
  { apiGroups: ['cdi.kubevirt.io'], resources: ['datavolumes'], verbs: ['get', 'create', 'patch', 'delete'] },
  { apiGroups: ['apps'], resources: ['controllerrevisions'], verbs: ['get', 'create', 'patch', 'delete'] },
  { apiGroups: [''], resources: ['events'], verbs: ['create', 'patch'] },
];

/** Makes the controllers; nothing happens before `start`. */
export function createSnapshotControllers({ client, clock, log, informers }: ControllerEnvironment): Runnable {
  const stores = snapshotStores(informers);
  const restores = informers.of(VIRTUAL_MACHINE_RESTORES);
  const recorder = (component: string) => createEventRecorder(client, { component, clock, log });
  const shared = { client, clock, log, stores, restores };
  const snapshot = { ...shared, events: recorder('snapshot-controller') };
  const controllers = [
    createSnapshotController(snapshot),
    createContentController(snapshot),
    createRestoreController({ ...shared, events: recorder('restore-controller') }),
    createVolumeStatusesController(shared),
  ];
  return {
    name: 'snapshot',
    start: async (signal) => {
      await Promise.all(controllers.map((controller) => controller.start(signal)));
    },
  };
}
