import { createController, ownKeys, source } from '@coracle/client/controller/controller';
import type { Runnable } from '@coracle/client/controller/environment';

import { type MemoryControllerOptions, MemorySteps } from './memory-steps.ts';
/** Rights the controller needs, and no others. */
export const memoryControllerRules = [
  {
    apiGroups: ['snapshot.kubevirt.io'],
    resources: ['virtualmachinesnapshots'],
    verbs: ['get', 'list', 'watch', 'patch', 'delete'],
  },
  { apiGroups: ['snapshot.kubevirt.io'], resources: ['virtualmachinesnapshots/status'], verbs: ['patch'] },
  {
    apiGroups: ['snapshot.kubevirt.io'],
    resources: ['virtualmachinesnapshotcontents'],
    verbs: ['get', 'list', 'watch'],
  },
  { apiGroups: ['snapshot.storage.k8s.io'], resources: ['volumesnapshots'], verbs: ['get', 'patch'] },
  { apiGroups: [''], resources: ['persistentvolumeclaims'], verbs: ['get', 'create'] },
  { apiGroups: [''], resources: ['persistentvolumes'], verbs: ['get'] },
  { apiGroups: ['kubevirt.io'], resources: ['virtualmachines/finalizers'], verbs: ['update'] },
  {
    apiGroups: ['kubevirt.io'],
    resources: ['virtualmachines'],
    verbs: ['get', 'list', 'watch', 'create', 'delete'],
  },
  { apiGroups: ['kubevirt.io'], resources: ['virtualmachineinstances'], verbs: ['get', 'list', 'watch'] },
  { apiGroups: [''], resources: ['nodes'], verbs: ['get'] },
  { apiGroups: [''], resources: ['events'], verbs: ['create', 'patch'] },
];

/** Makes the controller; nothing happens before `start`. */
export function createMemoryController(options: MemoryControllerOptions): Runnable {
  const steps = new MemorySteps(options);
  return createController({
    name: 'memory',
    client: steps.client,
    clock: steps.clock,
    log: steps.log,
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
