/**
 * Keeps one PodDisruptionBudget for each instance that an eviction must not kill. The answer to an eviction is the
 * admission's, which comes first; the budget holds the Pod where the admission cannot be asked, and on a cluster.
 * (Upstream had such budgets through 1.5 and has relied on its webhook alone since.)
 */

import { keyOf, keyText } from '@coracle/apimachinery/meta/object';
import { hasEnded } from '@coracle/apimachinery/meta/object-state';
import { POD_DISRUPTION_BUDGETS } from '@coracle/apimachinery/types/resource-types';
import type { PodDisruptionBudget } from '@coracle/apimachinery/types/types';
import { isApiError, isNamespaceTerminating, orGone } from '@coracle/client/api-failure';
import {
  type Controller,
  controllerOwner,
  createController,
  ownKeys,
  requeueAfter,
  source,
} from '@coracle/client/controller/controller';
import type { ControllerEnvironment } from '@coracle/client/controller/environment';
import type { EventRecorder } from '@coracle/client/events/recorder';
import { createExpectations } from '@coracle/client/expectations/expectations';
import { isOlder } from '@coracle/client/informer/resource-version';
import {
  KUBEVIRTS,
  type ReadonlyVmi,
  VIRTUAL_MACHINE_INSTANCE_MIGRATIONS,
  VIRTUAL_MACHINE_INSTANCES,
} from '../../kinds/kubevirt.ts';
import { clusterConfigOf } from '../../rules/machine-defaults/cluster-config.ts';
import { BUDGET_PREFIX, budgetFor, type ReadonlyBudget, wantedBudget } from './budget-plan.ts';

/** Pause until a budget that somebody's policy refused is tried again. */
const REFUSED_MS = 300_000;

/** Makes the controller; nothing happens before `start`. */
export function createBudgetController(
  options: ControllerEnvironment & { readonly events: EventRecorder },
): Controller {
  const { client, informers, clock, events } = options;
  const vmis = informers.of(VIRTUAL_MACHINE_INSTANCES);
  const migrations = informers.of(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS);
  const kubevirts = informers.of(KUBEVIRTS);
  const budgets = informers.of<PodDisruptionBudget>(POD_DISRUPTION_BUDGETS);
  budgets.addIndex('instance', ({ metadata }) =>
    (metadata.ownerReferences ?? [])
      .filter(({ controller, kind }) => controller === true && kind === 'VirtualMachineInstance')
      .map(({ uid }) => uid),
  );
  migrations.addIndex('instance', ({ metadata, spec }) => [`${metadata.namespace}/${spec.vmiName}`]);
  const expectations = createExpectations(clock);
  /** By instance: the budget that was changed here and may not be in the cache yet. */
  const changed = new Map<string, { readonly uid: string | undefined; readonly resourceVersion: string }>();

  const remove = async (budget: ReadonlyBudget): Promise<void> => {
    const preconditions = { uid: budget.metadata.uid ?? '' };
    await orGone(client.delete(POD_DISRUPTION_BUDGETS, keyOf(budget), { preconditions }));
  };
  const create = async (text: string, vmi: ReadonlyVmi, minAvailable: number) => {
    expectations.expectCreations(text, 1);
    try {
      const made = await client.create(POD_DISRUPTION_BUDGETS, budgetFor(vmi, minAvailable));
      events.event(vmi, 'Normal', 'SuccessfulCreate', `Created PodDisruptionBudget ${made.metadata.name}`);
    } catch (error) {
      expectations.creationFailed(text);
      // The namespace is on its way out, and the instance with it.
      if (isNamespaceTerminating(error)) return;
      if (!isApiError(error, 403, 422)) throw error;
      events.event(
        vmi,
        'Warning',
        'FailedCreate',
        `Error creating a PodDisruptionBudget: ${error.message}. The instance keeps running, and admission still refuses evictions of its Pod; nothing protects the Pod where admission is not called`,
      );
      return requeueAfter(REFUSED_MS);
    }
  };

  return createController({
    ...options,
    name: 'disruption-budget',
    concurrency: 2,
    sources: [
      ownKeys(vmis),
      source(budgets, (budget, previous) => {
        const keys = controllerOwner(budgets, { group: 'kubevirt.io', kind: 'VirtualMachineInstance' }).keys(
          budget as never,
          previous as never,
        );
        if (!previous) for (const key of keys) expectations.observeCreation(keyText(key));
        return keys;
      }),
      source(migrations, ({ metadata, spec }) => [{ namespace: metadata.namespace ?? '', name: spec.vmiName ?? '' }]),
      source(kubevirts, (_, previous) => (previous ? vmis.list().map((vmi) => keyOf(vmi)) : [])),
    ],
    reconcile: async (key) => {
      const text = keyText(key);
      const vmi = vmis.get(key);
      if (!vmi) {
        // The garbage collector takes the budget of an instance that is gone.
        expectations.forget(text);
        changed.delete(text);
        return;
      }
      if (!expectations.satisfied(text)) return;
      const wanted = wantedBudget(vmi, {
        clusterStrategy: clusterConfigOf(kubevirts.list()[0]).evictionStrategy,
        unfinished: migrations.byIndex('instance', text).filter((migration) => !hasEnded(migration)),
      });
      const own = budgets
        .byIndex('instance', vmi.metadata.uid ?? '')
        .filter(
          ({ metadata }) =>
            metadata.namespace === vmi.metadata.namespace &&
            metadata.deletionTimestamp === undefined &&
            metadata.name?.startsWith(BUDGET_PREFIX),
        );
      const [kept, ...surplus] = own;
      for (const budget of wanted === undefined ? own : surplus) await remove(budget);
      if (wanted === undefined) return;
      if (!kept) return create(text, vmi, wanted);
      // The event that shows the change brings the next pass.
      const mine = changed.get(text);
      if (mine?.uid === kept.metadata.uid && isOlder(kept.metadata.resourceVersion ?? '', mine?.resourceVersion ?? ''))
        return;
      changed.delete(text);
      if (kept.spec?.minAvailable !== wanted) {
        // Nobody else writes this field, but every Pod that comes or goes has the disruption controller write the status:
        // under the revision that was read, most of these would be conflicts.
        const body = { metadata: { uid: kept.metadata.uid }, spec: { minAvailable: wanted } };
        // Gone, or another one by now: its own event brings the next pass.
        const patched = await orGone(client.patch(POD_DISRUPTION_BUDGETS, keyOf(kept), { type: 'merge', body }));
        if (patched)
          changed.set(text, { uid: kept.metadata.uid, resourceVersion: patched.metadata.resourceVersion ?? '' });
      }
    },
  });
}
