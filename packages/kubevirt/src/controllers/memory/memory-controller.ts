import { policyRules } from '@coracle/apimachinery/types/policy-rules';
import { createController, ownKeys, source } from '@coracle/client/controller/controller';
import type { Runnable } from '@coracle/client/controller/environment';

import { type MemoryControllerOptions, MemorySteps } from './memory-steps.ts';
/** Rights the controller needs, and no others. */
export const memoryControllerRules = policyRules(
  'get list watch patch delete : snapshot.kubevirt.io : virtualmachinesnapshots',
  'patch : snapshot.kubevirt.io : virtualmachinesnapshots/status',
  'get list watch : snapshot.kubevirt.io : virtualmachinesnapshotcontents',
  'get patch : snapshot.storage.k8s.io : volumesnapshots',
  'get create : core : persistentvolumeclaims',
  'get : core : persistentvolumes',
  'update : kubevirt.io : virtualmachines/finalizers',
  'get list watch create delete : kubevirt.io : virtualmachines',
  'get list watch : kubevirt.io : virtualmachineinstances',
  'get : core : nodes',
  'create patch : core : events',
);

/** Makes the controller; nothing happens before `start`. */
export function createMemoryController(options: MemoryControllerOptions): Runnable {
  const steps = new MemorySteps(options);
  return createController({
    ...options,
    name: 'memory',
    concurrency: 4,
    sources: [
      ownKeys(steps.snapshots),
      source(steps.vms, steps.forksOf),
      source(steps.contents, ({ metadata, spec }) => [
        { namespace: metadata.namespace ?? '', name: spec.virtualMachineSnapshotName ?? '' },
      ]),
    ],
    reconcile: (key, { signal }) => steps.reconcile(key, signal),
  });
}
