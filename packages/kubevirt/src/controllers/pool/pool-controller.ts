/** Keeps as many virtual machines as each VirtualMachinePool asks for, and as its template says. */

import { keyOf, keyText, type ObjectKey } from '@coracle/apimachinery/meta/object';
import { isDeleting } from '@coracle/apimachinery/meta/object-state';
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
  POOL_GROUP,
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINE_POOLS,
  VIRTUAL_MACHINES,
  type VirtualMachinePool,
} from '../../kinds/kubevirt.ts';
import { poolCounts, poolPlan } from '../../rules/sets/pool-plan.ts';
import { observeMembers, setReport } from '../set-members.ts';
import { PoolSteps } from './pool-steps.ts';

/** Rights the controller needs, and no others. */
export const poolControllerRules = policyRules(
  `get list watch : ${POOL_GROUP} : virtualmachinepools`,
  `patch : ${POOL_GROUP} : virtualmachinepools/status`,
  // Machines that block their owner's deletion take this right on the owner.
  `update : ${POOL_GROUP} : virtualmachinepools/finalizers`,
  'get list watch create patch delete : kubevirt.io : virtualmachines',
  'get list watch patch delete : kubevirt.io : virtualmachineinstances',
  'get list watch create delete : apps : controllerrevisions',
  'get patch : cdi.kubevirt.io : datavolumes',
  'get patch : core : persistentvolumeclaims',
  'create patch : core : events',
);

const OWNER = { group: POOL_GROUP, kind: 'VirtualMachinePool' };

/** Makes the controller; nothing happens before `start`. */
export function createPoolController(environment: ControllerEnvironment): Runnable {
  const { client, informers, clock } = environment;
  const pools = informers.of(VIRTUAL_MACHINE_POOLS);
  const vms = informers.of(VIRTUAL_MACHINES);
  const vmis = informers.of(VIRTUAL_MACHINE_INSTANCES);
  const steps = new PoolSteps(environment);
  const owners = controllerOwner(vms, OWNER);
  const poolsOf = (key: ObjectKey): ObjectKey[] => {
    const vm = vms.get(key);
    return vm ? [...owners.keys(vm, undefined)] : [];
  };

  const controller = createController({
    ...environment,
    name: 'pool',
    concurrency: 2,
    sources: [
      ownKeys(pools),
      controllerOwner(steps.revisions, OWNER),
      source(vms, observeMembers(vms, owners, steps.expectations)),
      source(vmis, (vmi) => {
        const keys = poolsOf(keyOf(vmi));
        const uid = vmi.metadata.uid ?? '';
        if (vmis.get(keyOf(vmi))?.metadata.uid !== uid || isDeleting(vmi))
          for (const key of keys) steps.expectations.observeDeletion(keyText(key), uid);
        return keys;
      }),
    ],
    reconcile: async (key) => {
      const pool = pools.get(key);
      await steps.letGo(key, pool);
      if (!pool) {
        steps.expectations.forget(keyText(key));
        return;
      }
      const machines = steps.membersOf(pool);
      const plan = poolPlan({
        pool,
        machines,
        instanceOf: ({ metadata }) => vmis.get({ namespace: key.namespace, name: metadata.name ?? '' }),
        templateOf: (revision) => steps.templateOf({ namespace: key.namespace, name: revision }),
        now: clock.now(),
        random: Math.random,
      });
      const isCurrent = steps.expectations.satisfied(keyText(key));
      const problem = isCurrent ? await steps.carryOut(pool, plan) : undefined;
      if (isCurrent && !problem) await steps.pruneRevisions(pool, machines);
      steps.tellPaused(pool);
      const status: VirtualMachinePool['status'] = {
        ...pool.status,
        ...poolCounts(machines),
        ...setReport(pool, problem?.shown, clock.now()),
      };
      const after = { ...(pool as VirtualMachinePool), status };
      await orAbsent(commit(client, VIRTUAL_MACHINE_POOLS, { before: pool, after }));
      if (problem) throw problem.error;
      if (plan.waitMs !== undefined) return requeueAfter(plan.waitMs);
    },
  });
  return {
    name: 'pool',
    start: async (signal) => void (await Promise.all([steps.revisions.start(signal), controller.start(signal)])),
  };
}
