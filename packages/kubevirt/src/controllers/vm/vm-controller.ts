/**
 * The VirtualMachine controller. One pass is a chain of steps over a clone of the cached VM; a step may create or
 * delete the instance, edit metadata and spec, or stop the pass. What changed is committed at the end: metadata and
 * spec first (status then waits for the next pass), else status.
 */

import { isControlledBy } from '@coracle/apimachinery/meta/controller-reference';
import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import { keyOf, keyText, type ObjectKey } from '@coracle/apimachinery/meta/object';
import { conditionOf, hasEnded } from '@coracle/apimachinery/meta/object-state';
import { policyRules } from '@coracle/apimachinery/types/policy-rules';
import { commit } from '@coracle/client/commit/commit';
import {
  type Controller,
  createController,
  ownKeys,
  requeueAfter,
  source,
} from '@coracle/client/controller/controller';
import { nextTurn } from '@coracle/runtime/clock/next-turn';
import { type ReadonlyVm, type ReadonlyVmi, VIRTUAL_MACHINES, type VirtualMachine } from '../../kinds/kubevirt.ts';
import { type Machine, sharedMessage } from '../../rules/identity/shared-uuids.ts';
import { providedResources } from '../../rules/instancetype/expand.ts';
import { persistFirmwareUuid } from './persist-firmware-uuid.ts';
import { releaseLeft } from './release-instance.ts';
import { removeRevision } from './sync-instancetype.ts';
import { applyVmStatus } from './vm-status.ts';
import { type Pass, type VmControllerOptions, VmSteps } from './vm-steps.ts';
/** Rights the controller needs, and no others. */
export const vmControllerRules = policyRules(
  'get list watch patch : kubevirt.io : virtualmachines',
  'patch : kubevirt.io : virtualmachines/status',
  'update : kubevirt.io : virtualmachines/finalizers',
  'get list watch create delete patch : kubevirt.io : virtualmachineinstances',
  'get list watch : kubevirt.io : kubevirts',
  `get list watch : instancetype.kubevirt.io : virtualmachineinstancetypes virtualmachineclusterinstancetypes
    virtualmachinepreferences virtualmachineclusterpreferences`,
  'get list watch create patch : cdi.kubevirt.io : datavolumes',
  'get : cdi.kubevirt.io : datasources',
  'get patch : core : persistentvolumeclaims',
  'create : authorization.k8s.io : subjectaccessreviews',
  'get list watch create delete : apps : controllerrevisions',
  'create patch : core : events',
);

/** When a firmware UUID that a policy would not have written is tried again. */
const REFUSED_UUID_RETRY_MS = 30_000;

/** Makes the controller; nothing happens before `start`. */
export function createVmController(options: VmControllerOptions): Controller {
  const steps = new VmSteps(options, (key) => controller.enqueue(key));
  const controller: Controller = createController({
    ...options,
    name: 'vm',
    sources: [
      ownKeys(steps.vms),
      source(steps.vmis, (vmi, previous) => {
        const key = keyOf(vmi);
        if (!previous) steps.expectations.observeCreation(keyText(key));
        return [key];
      }),
      source(steps.vms, (vm, previous) => machineKeys(steps.uuids.touchedByVm(vm, previous))),
      source(steps.vmis, (vmi, previous) => machineKeys(steps.uuids.touchedByVmi(vmi, previous))),
      ...steps.lookup.sources,
    ],
    concurrency: 8,
    reconcile: async (key, { signal }) => {
      const cached = steps.vms.get(key);
      const found = steps.vmis.get(key);
      const instance = found && cached && isControlledBy(found, cached.metadata.uid) ? found : undefined;
      if (found && !instance) await releaseLeft(steps.client, found);
      if (!cached) return steps.expectations.forget(keyText(key));
      if (!steps.expectations.satisfied(keyText(key))) return;
      const identity = await persistFirmwareUuid(steps.client, cached, instance);
      if (identity.isWritten) return;
      const after = cloneJson(cached) as VirtualMachine;
      const pass: Pass = {
        key,
        vm: after,
        instance,
        expects: undefined,
        failure: identity.failure,
        restartRequired: knownRestart(cached, found),
        layers: undefined,
        unneeded: [],
        disks: undefined,
        requeueMs: identity.failure && REFUSED_UUID_RETRY_MS,
        isOver: false,
        signal,
      };
      let error: unknown;
      try {
        for (const step of steps.STEPS) {
          // A machine may be large, and several steps reckon what it stands for.
          if (steps.clock.turnIsLong()) await nextTurn();
          await step(pass);
          if (pass.isOver) break;
        }
      } catch (thrown) {
        error = thrown;
      }
      noteResources(pass);
      applyVmStatus({
        ...pass,
        disks: pass.disks?.state,
        diskProblem: pass.disks?.problem,
        duplicateUuid: sharedMessage(steps.uuids.ofVm(cached, pass.instance), key.namespace),
        now: steps.clock.now(),
        random: steps.random(),
      });
      steps.tellProblems(cached, after);
      steps.tellUnserved(cached);
      const change = { before: cached, after, order: 'status-last' } as const;
      const stored = await commit<VirtualMachine>(steps.client, VIRTUAL_MACHINES, change);
      if (error) throw error;
      for (const name of pass.unneeded) await removeRevision(stored ?? cached, name, steps);
      if (pass.requeueMs !== undefined) return requeueAfter(pass.requeueMs);
    },
  });
  return controller;
}

/** Says what the guest has by its instance type: until a restart that is required, what it was started with. */
function noteResources({ vm, layers, restartRequired }: Pass): void {
  const ref = vm.status?.instancetypeRef;
  if (!ref || !layers?.instancetype || (restartRequired !== undefined && ref.resources)) return;
  const resources = providedResources(layers);
  if (resources) ref.resources = resources;
  else delete ref.resources;
}

const machineKeys = (machines: readonly Machine[]): ObjectKey[] =>
  machines.filter(({ kind }) => kind === 'VirtualMachine').map(({ namespace, name }) => ({ namespace, name }));

/** What the status says of a restart, for a pass that does not get to the comparison. */
const knownRestart = (vm: ReadonlyVm, instance: ReadonlyVmi | undefined): string | undefined =>
  instance && !hasEnded(instance) ? conditionOf(vm, 'RestartRequired')?.message : undefined;
