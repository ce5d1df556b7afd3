/** Keeps as many instances as each VirtualMachineInstanceReplicaSet asks for. */

import { controllerOf } from '@coracle/apimachinery/meta/controller-reference';
import { keyOf, keyText } from '@coracle/apimachinery/meta/object';
import { matchesLabels } from '@coracle/apimachinery/selector/label-selector';
import { policyRules } from '@coracle/apimachinery/types/policy-rules';
import { orAbsent } from '@coracle/client/api-failure';
import { commit } from '@coracle/client/commit/commit';
import {
  controllerOwner,
  createController,
  ownKeys,
  requeueAfter,
  source,
} from '@coracle/client/controller/controller';
import type { ControllerEnvironment, Runnable } from '@coracle/client/controller/environment';
import {
  KUBEVIRT_GROUP,
  VIRTUAL_MACHINE_INSTANCE_REPLICA_SETS,
  VIRTUAL_MACHINE_INSTANCES,
  type VirtualMachineInstanceReplicaSet,
} from '../../kinds/kubevirt.ts';
import { selectorOf } from '../../rules/sets/claim-members.ts';
import { replicaSetPlan } from '../../rules/sets/replica-set-plan.ts';
import { observeMembers, setReport } from '../set-members.ts';
import { MEMBERS, orphansOf, ReplicaSetSteps } from './replica-set-steps.ts';

/** Rights the controller needs, and no others. */
export const replicaSetControllerRules = policyRules(
  'get list watch : kubevirt.io : virtualmachineinstancereplicasets',
  'patch : kubevirt.io : virtualmachineinstancereplicasets/status',
  // Instances that block their owner's deletion take this right on the owner.
  'update : kubevirt.io : virtualmachineinstancereplicasets/finalizers',
  'get list watch create patch delete : kubevirt.io : virtualmachineinstances',
  'create patch : core : events',
);

const OWNER = { group: KUBEVIRT_GROUP, kind: 'VirtualMachineInstanceReplicaSet' };

/** Makes the controller; nothing happens before `start`. */
export function createReplicaSetController(environment: ControllerEnvironment): Runnable {
  const { client, informers, clock } = environment;
  const sets = informers.of(VIRTUAL_MACHINE_INSTANCE_REPLICA_SETS);
  const vmis = informers.of(VIRTUAL_MACHINE_INSTANCES);
  const steps = new ReplicaSetSteps(environment);
  vmis.addIndex(MEMBERS, (vmi) => [controllerOf(vmi)?.uid ?? orphansOf(vmi.metadata.namespace)]);
  const observe = observeMembers(vmis, controllerOwner(vmis, OWNER), steps.expectations);

  return createController({
    ...environment,
    name: 'replica-set',
    concurrency: 2,
    sources: [
      ownKeys(sets),
      source(vmis, (vmi, previous) => {
        const keys = observe(vmi, previous);
        if (controllerOf(vmi)?.uid !== undefined) return keys;
        // Nobody has it: a set that selects it takes it.
        const takers = sets
          .list(vmi.metadata.namespace)
          .filter((set) => matchesLabels(selectorOf(set), vmi.metadata.labels));
        return [...keys, ...takers.map((set) => keyOf(set))];
      }),
    ],
    reconcile: async (key) => {
      const set = sets.get(key);
      if (!set) {
        steps.expectations.forget(keyText(key));
        return;
      }
      const own = await steps.claim(set);
      const plan = replicaSetPlan(set, own, clock.now());
      const problem = steps.expectations.satisfied(keyText(key)) ? await steps.scale(set, plan) : undefined;
      const status: VirtualMachineInstanceReplicaSet['status'] = {
        ...set.status,
        replicas: plan.replicas,
        readyReplicas: plan.readyReplicas,
        ...setReport(set, problem?.shown, clock.now()),
      };
      const after = { ...(set as VirtualMachineInstanceReplicaSet), status };
      await orAbsent(commit(client, VIRTUAL_MACHINE_INSTANCE_REPLICA_SETS, { before: set, after }));
      if (problem) throw problem.error;
      if (plan.waitMs !== undefined) return requeueAfter(plan.waitMs);
    },
  });
}
