/**
 * Counts the healthy Pods of each PodDisruptionBudget and says how many may go (pkg/controller/disruption). Evictions
 * read that number; without this controller every budget would hold for ever.
 */

import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import { type DeepReadonly, formatTime, keyOf } from '@coracle/apimachinery/meta/object';
import { conditionOf, isConditionTrue, isDeleting } from '@coracle/apimachinery/meta/object-state';
import {
  formatLabelSelector,
  fromLabelSelectorObject,
  type LabelSelector,
  matchesLabels,
  readableSelector,
} from '@coracle/apimachinery/selector/label-selector';
import { policyRules } from '@coracle/apimachinery/types/policy-rules';
import { POD_DISRUPTION_BUDGETS, PODS, REPLICA_SETS } from '@coracle/apimachinery/types/resource-types';
import type { Condition, IntOrString, Pod, PodDisruptionBudget } from '@coracle/apimachinery/types/types';
import { orAbsent } from '@coracle/client/api-failure';
import { commit } from '@coracle/client/commit/commit';
import { createController, ownKeys, requeueAfter, source } from '@coracle/client/controller/controller';
import type { ControllerEnvironment, Runnable } from '@coracle/client/controller/environment';
import { createEventRecorder } from '@coracle/client/events/recorder';
import { getOrInsert } from '@coracle/runtime/collections/get-or-insert';
import { createDiscoveryCache } from './discovery-cache.ts';
import { expectedPods, UnknownScale } from './owner-scale.ts';
import { createStaleDisruptionController } from './stale-disruption-controller.ts';

export const disruptionRules = policyRules(
  'list watch : policy : poddisruptionbudgets',
  'patch : policy : poddisruptionbudgets/status',
  'list watch : core : pods',
  'patch : core : pods/status',
  'get list watch : apps : replicasets',
  // Whatever kind keeps the Pods: what it wants is in its scale.
  'get : * : */scale',
  'get : apps : deployments statefulsets',
  'get : core : replicationcontrollers',
  'get : kubevirt.io : virtualmachineinstances',
  'list watch : apiextensions.k8s.io : customresourcedefinitions',
  'list watch : apiregistration.k8s.io : apiservices',
  'create patch : core : events',
  'get : /api /api/* /apis /apis/*',
);

/** An eviction that was granted and did not end in a deletion by then is forgotten. */
const DELETION_TIMEOUT_MS = 120_000;

type Budget = DeepReadonly<PodDisruptionBudget>;
type BudgetStatus = NonNullable<PodDisruptionBudget['status']>;

interface BudgetFacts {
  /** The Pods the budget selects. */
  readonly pods: readonly DeepReadonly<Pod>[];
  /** How many Pods there should be; a text says why that is not known. */
  readonly expected: number | string;
  readonly now: number;
}

/** True when the budget selects the Pod: an empty selector selects every Pod, none or a broken one selects no Pod. */
function selectsPod(budget: Budget, pod: DeepReadonly<Pod>): boolean {
  const selector = getOrInsert(selectors, budget, ({ spec }) => readableSelector(spec?.selector));
  return matchesLabels(selector, pod.metadata.labels ?? {});
}

/** Of budgets that were asked about: each is asked about thousands of Pods. */
const selectors = new WeakMap<Budget, LabelSelector>();

/** A number, or a share of `total` rounded up. */
function scaled(value: IntOrString, total: number): number {
  if (typeof value === 'number') return value;
  const percent = /^([0-9]+)%$/.exec(value)?.[1];
  return percent === undefined ? 0 : Math.ceil((Number(percent) * total) / 100);
}

/** The status the budget should have, conditions beside its own kept. */
export function budgetStatus(budget: Budget, facts: BudgetFacts): BudgetStatus {
  const { pods, now } = facts;
  const { minAvailable, maxUnavailable } = budget.spec ?? {};
  const disruptedPods = stillDisrupted(budget, facts);
  const healthy = pods.filter(
    (pod) =>
      !isDeleting(pod) && isConditionTrue(pod, 'Ready') && !Object.hasOwn(disruptedPods, pod.metadata.name ?? ''),
  ).length;
  // A plain number of Pods needs no owner to be counted against.
  const counted = maxUnavailable === undefined && typeof minAvailable === 'number';
  const expected = counted ? pods.length : facts.expected;
  if (typeof expected === 'string') return unknownStatus(budget, expected, now);
  const desired =
    maxUnavailable !== undefined
      ? Math.max(0, expected - scaled(maxUnavailable, expected))
      : scaled(minAvailable ?? 1, expected);
  const allowed = expected === 0 ? 0 : Math.max(0, healthy - desired);
  const observedGeneration = budget.metadata.generation ?? 0;
  return {
    observedGeneration,
    disruptionsAllowed: allowed,
    currentHealthy: healthy,
    desiredHealthy: desired,
    expectedPods: expected,
    ...(Object.keys(disruptedPods).length > 0 && { disruptedPods }),
    conditions: withCondition(budget, {
      status: allowed > 0 ? 'True' : 'False',
      reason: allowed > 0 ? 'SufficientPods' : 'InsufficientPods',
      message: '',
      now,
      observedGeneration,
    }),
  };
}

/** Fails safe: nothing may go, everything else stays as it was last known. */
function unknownStatus(budget: Budget, message: string, now: number): BudgetStatus {
  return {
    currentHealthy: 0,
    desiredHealthy: 0,
    expectedPods: 0,
    ...cloneJson<Partial<BudgetStatus>>(budget.status ?? {}),
    disruptionsAllowed: 0,
    // The generation last counted: this one was not.
    conditions: withCondition(budget, {
      status: 'False',
      reason: 'SyncFailed',
      message,
      now,
      observedGeneration: budget.status?.observedGeneration ?? 0,
    }),
  };
}

function stillDisrupted(budget: Budget, { pods, now }: BudgetFacts): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const [name, since] of Object.entries(budget.status?.disruptedPods ?? {})) {
    const pod = pods.find((one) => one.metadata.name === name);
    if (!pod || isDeleting(pod)) continue;
    if (now - Date.parse(since) < DELETION_TIMEOUT_MS) kept[name] = since;
  }
  return kept;
}

function withCondition(
  budget: Budget,
  { now, ...wanted }: Omit<Condition, 'type' | 'lastTransitionTime'> & { readonly now: number },
): Condition[] {
  const type = 'DisruptionAllowed';
  const known = conditionOf(budget, type);
  const since = known?.status === wanted.status ? known.lastTransitionTime : undefined;
  const others = (budget.status?.conditions ?? []).filter((one) => one.type !== type);
  return [...others, { type, ...wanted, lastTransitionTime: since ?? formatTime(now) }];
}

/** Makes the controller; its keys are budgets. Beside it runs the one that takes stale marks off Pods. */
export function createDisruptionController(environment: ControllerEnvironment): Runnable {
  const { client, informers, clock, log } = environment;
  const budgets = informers.of(POD_DISRUPTION_BUDGETS);
  const pods = informers.of(PODS);
  const replicaSets = informers.of(REPLICA_SETS);
  const within = (namespace: string | undefined) => budgets.list(namespace ?? '');

  const discovery = createDiscoveryCache(client, informers, clock);
  const recorder = createEventRecorder(client, { component: 'controllermanager', clock, log });

  /** How many Pods their owners want, or why that is not known. */
  const expectedOf = async (
    budget: Budget,
    selected: readonly DeepReadonly<Pod>[],
    signal: AbortSignal,
  ): Promise<number | string> => {
    const { minAvailable, maxUnavailable } = budget.spec ?? {};
    if (maxUnavailable === undefined && typeof minAvailable === 'number') return selected.length;
    try {
      const { count, unmanaged } = await expectedPods(selected, { client, discovery, signal });
      if (unmanaged.length > 0) {
        const message = `Pods selected by this PodDisruptionBudget (selector: ${formatLabelSelector(fromLabelSelectorObject(budget.spec?.selector))}) were found to be unmanaged. As a result, the status of the PDB cannot be calculated correctly, which may result in undefined behavior. To account for these pods please set ".spec.minAvailable" field of the PDB to an integer value.`;
        recorder.event(budget, 'Warning', 'UnmanagedPods', message);
      }
      return count;
    } catch (error) {
      if (!(error instanceof UnknownScale)) throw error;
      const message = `Failed to calculate the number of expected pods: ${error.message}`;
      recorder.event(budget, 'Warning', 'CalculateExpectedPodCountFailed', message);
      return error.message;
    }
  };

  /** Granted evictions that came to nothing are reported once, as they are forgotten. */
  const reportUndone = (budget: Budget, selected: readonly DeepReadonly<Pod>[], kept: object): void => {
    for (const name of Object.keys(budget.status?.disruptedPods ?? {})) {
      const pod = selected.find(({ metadata }) => metadata.name === name);
      if (!pod || isDeleting(pod) || Object.hasOwn(kept, name)) continue;
      const message = `Pod was expected by PDB ${budget.metadata.namespace}/${budget.metadata.name} to be deleted but it wasn't`;
      recorder.event(pod, 'Warning', 'NotDeleted', message);
    }
  };

  const controller = createController({
    ...environment,
    name: 'disruption-controller',
    concurrency: 4,
    sources: [
      ownKeys(budgets),
      source(pods, (pod, previous) =>
        within(pod.metadata.namespace)
          .filter((budget) => selectsPod(budget, pod) || (previous !== undefined && selectsPod(budget, previous)))
          .map(keyOf),
      ),
      source(replicaSets, (set) => within(set.metadata.namespace).map(keyOf)),
    ],
    async reconcile(key, { signal }) {
      const budget = budgets.get(key);
      if (!budget || isDeleting(budget)) return;
      const selected = pods.list(key.namespace).filter((pod) => selectsPod(budget, pod));
      if (selected.length === 0) recorder.event(budget, 'Normal', 'NoPods', 'No matching pods found');
      const expected = await expectedOf(budget, selected, signal);
      const status = budgetStatus(budget, { pods: selected, expected, now: clock.now() });
      const change = { before: budget, after: { ...budget, status }, subresource: 'status', signal };
      await orAbsent(commit(client, POD_DISRUPTION_BUDGETS, change));
      reportUndone(budget, selected, status.disruptedPods ?? {});
      const since = Object.values(status.disruptedPods ?? {}).map((time) => Date.parse(time));
      if (since.length === 0) return;
      return requeueAfter(Math.max(1, Math.min(...since) + DELETION_TIMEOUT_MS - clock.now()));
    },
  });
  const stale = createStaleDisruptionController(environment);
  return {
    name: controller.name,
    start: async (signal) => {
      await Promise.all([controller.start(signal), stale.start(signal)]);
    },
  };
}
