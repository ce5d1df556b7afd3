import { keyOf, keyText } from '@coracle/apimachinery/meta/object';
import { hasEnded } from '@coracle/apimachinery/meta/object-state';
import { policyRules } from '@coracle/apimachinery/types/policy-rules';
import { createController, ownKeys, requeueAfter, source } from '@coracle/client/controller/controller';
import type { ControllerEnvironment, Runnable } from '@coracle/client/controller/environment';
import type { ReadonlyVmi } from '../../kinds/kubevirt.ts';
import { isDeletedForSilence, isNodeReady } from '../../rules/eviction/silent-deletion.ts';
import { clusterConfigOf } from '../../rules/machine-defaults/cluster-config.ts';
import { migrationSettings } from '../../rules/migration-policy/migration-settings.ts';
import { launchersOf } from '../launcher-pod-informer.ts';
import { createBudgetController } from './budget-controller.ts';
import { DRAIN_ANNOTATION, planEvacuation } from './evacuation-plan.ts';

import { EvacuationSteps } from './evacuation-steps.ts';
/** Rights the two controllers need, and no others. */
export const evacuationControllerRules = policyRules(
  'get list watch create delete : kubevirt.io : virtualmachineinstancemigrations',
  'get list watch patch : kubevirt.io : virtualmachineinstances',
  'patch : kubevirt.io : virtualmachineinstances/status',
  // A budget that blocks its owner's deletion takes this right on the owner.
  'update : kubevirt.io : virtualmachineinstances/finalizers',
  'get list watch : kubevirt.io : kubevirts',
  'get list watch : core : nodes pods',
  'get list watch create patch delete : policy : poddisruptionbudgets',
  'create patch : core : events',
);

/** Pause until instances that could not be acted on are looked at again. */
const WAITING_MS = 5000;
/** Warnings about what is stuck are said again, before they fade from the log of events. */
const STUCK_MS = 60_000;

/** Makes both controllers; nothing happens before `start`. */
export function createEvacuationController(options: ControllerEnvironment): Runnable {
  const steps = new EvacuationSteps(options);
  const controller = createController({
    ...options,
    name: 'evacuation',
    sources: [
      ownKeys(steps.nodes),
      // The mark that the taint manager leaves may come just as the node is back.
      source(steps.pods, ({ metadata, spec }) =>
        metadata.deletionTimestamp !== undefined && spec.nodeName ? [{ namespace: '', name: spec.nodeName }] : [],
      ),
      source(steps.vmis, (vmi, previous) =>
        [...new Set([vmi.status?.nodeName, previous?.status?.nodeName])].flatMap((name) =>
          name ? [{ namespace: '', name }] : [],
        ),
      ),
      source(steps.migrations, (migration, previous) => {
        const key = { namespace: migration.metadata.namespace ?? '', name: migration.spec.vmiName ?? '' };
        if (!previous) steps.expectations.observeCreation(keyText(key));
        const name = steps.vmis.get(key)?.status?.nodeName;
        return name ? [{ namespace: '', name }] : [];
      }),
    ],
    reconcile: async ({ name }) => {
      const node = steps.nodes.get({ namespace: '', name });
      if (!node) return;
      const instances = steps.vmis.byIndex('node', name);
      const kubevirt = steps.kubevirts.list()[0];
      const livePods = (vmi: ReadonlyVmi) => launchersOf(steps.pods, vmi).filter((pod) => !hasEnded(pod));
      const plan = planEvacuation({
        node,
        instances,
        unfinished: steps.migrations.list().filter((migration) => !hasEnded(migration)),
        drainTaintKey: migrationSettings(kubevirt).nodeDrainTaintKey,
        clusterStrategy: clusterConfigOf(kubevirt).evictionStrategy,
        livePods: (vmi) => livePods(vmi).length,
        isCondemned: (vmi) =>
          isNodeReady(node) &&
          livePods(vmi).some((pod) => pod.spec.nodeName === name && isDeletedForSilence(pod, node)),
      });
      const failures: unknown[] = [];
      const each = async <T>(items: readonly T[], act: (item: T) => Promise<void>): Promise<void> => {
        // One that fails must not hold up the others of the node.
        for (const item of items) await act(item).catch((error: unknown) => failures.push(error));
      };
      await each(plan.cancel, steps.cancel);
      await each(plan.release, (vmi) => steps.release(name, vmi));
      await each(plan.notice, (vmi) => steps.setNote(vmi, name));
      // A note outlives its mark by one write: after a move, a release, or evacuate/cancel.
      await each(
        instances.filter(
          ({ metadata, status }) =>
            metadata.annotations?.[DRAIN_ANNOTATION] !== undefined && !status?.evacuationNodeName,
        ),
        (vmi) => steps.setNote(vmi, undefined),
      );
      await each(
        plan.migrate.filter((vmi) => steps.expectations.satisfied(keyText(keyOf(vmi)))),
        (vmi) => steps.evacuate(name, vmi),
      );
      for (const vmi of plan.stuck)
        steps.events.event(vmi, 'Normal', 'FailedCreate', 'VirtualMachineInstance is not migrateable');
      const external = `Node ${name} waits for this instance: its eviction strategy is External, so that an outside controller has to move or delete it`;
      for (const vmi of plan.external) steps.events.event(vmi, 'Normal', 'WaitingForExternalEviction', external);
      if (failures.length > 0) throw failures[0];
      if (plan.waiting > 0) return requeueAfter(WAITING_MS);
      if (plan.stuck.length + plan.external.length > 0) return requeueAfter(STUCK_MS);
    },
  });
  const budgets = createBudgetController({ ...options, events: steps.events });
  return {
    name: 'evacuation',
    start: async (signal) => {
      await Promise.all([steps.pods.start(signal), controller.start(signal), budgets.start(signal)]);
    },
  };
}
