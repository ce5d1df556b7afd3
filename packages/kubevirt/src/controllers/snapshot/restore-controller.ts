import { keyOf } from '@coracle/apimachinery/meta/object';
import { type Controller, createController, ownKeys, source } from '@coracle/client/controller/controller';
import { RestoreSteps } from './restore-steps.ts';
import type { SnapshotControllerOptions } from './snapshot-controller.ts';

/** Makes the controller; nothing happens before `start`. */
export function createRestoreController(options: SnapshotControllerOptions): Controller {
  const steps = new RestoreSteps(options);
  return createController({
    ...options,
    name: 'restore',
    concurrency: 4,
    sources: [
      ownKeys(steps.restores),
      source(steps.snapshots, steps.ofSnapshot),
      source(steps.contents, ({ metadata }) => steps.open(metadata.namespace).map((each) => keyOf(each))),
      source(steps.vms, (vm) => {
        const name = vm.status?.restoreInProgress;
        return [
          ...steps.ofTarget(vm),
          ...(name === undefined ? [] : [{ namespace: vm.metadata.namespace ?? '', name }]),
        ];
      }),
      source(steps.vmis, steps.ofTarget),
      source(steps.claims, ({ metadata }) => steps.open(metadata.namespace).map((each) => keyOf(each))),
    ],
    reconcile: async (key) => {
      const restore = steps.restores.get(key);
      if (restore !== undefined) return steps.reconcile(restore);
      await steps.releaseHeld(key);
    },
  });
}
