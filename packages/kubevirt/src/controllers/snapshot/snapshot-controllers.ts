/** The controllers of snapshots and restores, as one component. */

import { policyRules } from '@coracle/apimachinery/types/policy-rules';
import type { ControllerEnvironment, Runnable } from '@coracle/client/controller/environment';
import { createEventRecorder } from '@coracle/client/events/recorder';
import { VIRTUAL_MACHINE_RESTORES } from '../../kinds/kubevirt.ts';
import { createContentController } from './content-controller.ts';
import { createRestoreController } from './restore-controller.ts';
import { createSnapshotController } from './snapshot-controller.ts';
import { snapshotStores } from './snapshot-stores.ts';
import { createVolumeStatusesController } from './volume-statuses-controller.ts';

/** Rights the controllers need, and no others. */
export const snapshotControllerRules = policyRules(
  'get list watch patch : snapshot.kubevirt.io : virtualmachinesnapshots virtualmachinerestores',
  'get list watch create patch delete : snapshot.kubevirt.io : virtualmachinesnapshotcontents',
  `patch : snapshot.kubevirt.io : virtualmachinesnapshots/status virtualmachinesnapshotcontents/status
    virtualmachinerestores/status`,
  // What blocks its owner's deletion takes this right on the owner.
  `update : snapshot.kubevirt.io : virtualmachinesnapshots/finalizers virtualmachinesnapshotcontents/finalizers
    virtualmachinerestores/finalizers`,
  'get list watch create patch : kubevirt.io : virtualmachines',
  'patch : kubevirt.io : virtualmachines/status',
  'update : kubevirt.io : virtualmachines/finalizers',
  'get list watch : kubevirt.io : virtualmachineinstances',
  `update : subresources.kubevirt.io : virtualmachineinstances/freeze virtualmachineinstances/unfreeze
    virtualmachines/stop`,
  'get : subresources.kubevirt.io : virtualmachines/expand-spec',
  'get list watch create patch delete : core : persistentvolumeclaims',
  'get list watch : core : pods',
  'get list watch : storage.k8s.io : storageclasses',
  'get list watch create : snapshot.storage.k8s.io : volumesnapshots',
  'get list watch : snapshot.storage.k8s.io : volumesnapshotclasses',
  'get create patch delete : cdi.kubevirt.io : datavolumes',
  'get create patch delete : apps : controllerrevisions',
  'create patch : core : events',
);

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
