/**
 * Counts the healthy Pods of each PodDisruptionBudget and says how many may go (pkg/controller/disruption). Evictions
 * read that number; without this controller every budget would hold for ever.
 */

import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import { type DeepReadonly, formatTime } from '@coracle/apimachinery/meta/object';
import {
  formatLabelSelector,
  fromLabelSelectorObject,
  type LabelSelector,
  type LabelSelectorObject,
  matchesLabels,
  NOTHING,
} from '@coracle/apimachinery/selector/label-selector';
import { policyRules } from '@coracle/apimachinery/types/policy-rules';
import { POD_DISRUPTION_BUDGETS, PODS, REPLICA_SETS } from '@coracle/apimachinery/types/resource-types';
import type { IntOrString, Pod, PodDisruptionBudget } from '@coracle/apimachinery/types/types';
import { orAbsent } from '@coracle/client/api-failure';
import { createController, DONE, ownKeys, requeueAfter, source } from '@coracle/client/controller/controller';
import type { ControllerEnvironment, Runnable } from '@coracle/client/controller/environment';
import { createEventRecorder } from '@coracle/client/events/recorder';
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

export interface BudgetFacts {
  /** The Pods the budget selects. */
  readonly pods: readonly DeepReadonly<Pod>[];
  /** How many Pods there should be; a text says why that is not known. */
  readonly expected: number | string;
  readonly now: number;
}

/** True when the budget selects the Pod: an empty selector selects every Pod, none or a broken one selects no Pod. */
export function selectsPod(budget: Budget, pod: DeepReadonly<Pod>): boolean {
  let selector = selectors.get(budget);
  if (selector === undefined) {
    selector = selectorOf(budget);
    selectors.set(budget, selector);
  }
  return matchesLabels(selector, pod.metadata.labels ?? {});
}

/** Of budgets that were asked about: each is asked about thousands of Pods. */
const selectors = new WeakMap<Budget, LabelSelector>();

function selectorOf({ spec }: Budget): LabelSelector {
  try {
    return fromLabelSelectorObject(spec?.selector as LabelSelectorObject | undefined);
  } catch {
    return NOTHING;
  }
}

/** A number, or a share of `total` rounded up. */
function scaled(value: IntOrString, total: number): number {
  if (typeof value === 'number') return value;
  const percent = /^([0-9]+)%$/.exec(value)?.[1];
  return percent === undefined ? 0 : Math.ceil((Number(percent) * total) / 100);
}

const isReady = (pod: DeepReadonly<Pod>): boolean =>
  pod.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') === true;

/** The status the budget should have, conditions beside its own kept. */
export function budgetStatus(budget: Budget, facts: BudgetFacts): NonNullable<PodDisruptionBudget['status']> {
  const { pods, now } = facts;
  const { minAvailable, maxUnavailable } = budget.spec ?? {};
  const disruptedPods = stillDisrupted(budget, facts);
  const healthy = pods.filter(
    (pod) =>
      pod.metadata.deletionTimestamp === undefined &&
      isReady(pod) &&
      !Object.hasOwn(disruptedPods, pod.metadata.name ?? ''),
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
  const reason = allowed > 0 ? 'SufficientPods' : 'InsufficientPods';
  return {
    observedGeneration: budget.metadata.generation ?? 0,
    disruptionsAllowed: allowed,
    currentHealthy: healthy,
    desiredHealthy: desired,
    expectedPods: expected,
    ...(Object.keys(disruptedPods).length > 0 && { disruptedPods }),
    conditions: withCondition(budget, {
      status: allowed > 0 ? 'True' : 'False',
      reason,
      message: '',
      now,
      observedGeneration: budget.metadata.generation ?? 0,
    }),
  };
}

/** Fails safe: nothing may go, everything else stays as it was last known. */
function unknownStatus(budget: Budget, message: string, now: number): NonNullable<PodDisruptionBudget['status']> {
  const {
    currentHealthy = 0,
    desiredHealthy = 0,
    expectedPods = 0,
    ...rest
  } = cloneJson<NonNullable<PodDisruptionBudget['status']>>(
    (budget.status ?? {}) as NonNullable<PodDisruptionBudget['status']>,
  );
  return {
    ...rest,
    currentHealthy,
    desiredHealthy,
    expectedPods,
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
    if (!pod || pod.metadata.deletionTimestamp !== undefined) continue;
    if (now - Date.parse(since) < DELETION_TIMEOUT_MS) kept[name] = since;
  }
  return kept;
}

function withCondition(
  budget: Budget,
  {
    now,
    ...wanted
  }: { status: 'True' | 'False'; reason: string; message: string; now: number; observedGeneration: number },
) {
  const all = budget.status?.conditions ?? [];
  const known = all.find(({ type }) => type === 'DisruptionAllowed');
  const lastTransitionTime =
    known?.status === wanted.status ? (known.lastTransitionTime ?? formatTime(now)) : formatTime(now);
  const others = all.filter(({ type }) => type !== 'DisruptionAllowed');
  return [...others, { type: 'DisruptionAllowed', ...wanted, lastTransitionTime }] as NonNullable<
    NonNullable<PodDisruptionBudget['status']>['conditions']
  >;
}

/** Makes the controller; its keys are budgets. Beside it runs the one that takes stale marks off Pods. */
export function createDisruptionController(environment: ControllerEnvironment): Runnable {
  const { client, informers, clock, log } = environment;
  const budgets = informers.of(POD_DISRUPTION_BUDGETS);
  const pods = informers.of(PODS);
  const replicaSets = informers.of(REPLICA_SETS);
  const within = (namespace: string | undefined) => budgets.list(namespace ?? '');
  const keyOf = ({ metadata }: Budget) => ({ namespace: metadata.namespace ?? '', name: metadata.name ?? '' });

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
      if (!pod || pod.metadata.deletionTimestamp !== undefined || Object.hasOwn(kept, name)) continue;
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
      if (!budget || budget.metadata.deletionTimestamp !== undefined) return DONE;
      const selected = pods.list(key.namespace).filter((pod) => selectsPod(budget, pod));
      if (selected.length === 0) recorder.event(budget, 'Normal', 'NoPods', 'No matching pods found');
      const expected = await expectedOf(budget, selected, signal);
      const status = budgetStatus(budget, { pods: selected, expected, now: clock.now() });
      if (!deepEqual(status, budget.status)) {
        const { resourceVersion } = budget.metadata;
        const body = { metadata: { resourceVersion }, status: { disruptedPods: null, ...status } };
        await orAbsent(
          client.patch(
            POD_DISRUPTION_BUDGETS,
            key,
            { type: 'merge', body: dropGone(budget, body) },
            {
              subresource: 'status',
              signal,
            },
          ),
        );
      }
      reportUndone(budget, selected, status.disruptedPods ?? {});
      const since = Object.values(status.disruptedPods ?? {}).map((time) => Date.parse(time));
      if (since.length === 0) return DONE;
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

/** A merge patch keeps members it does not name: Pods that are no longer disrupted are named as null. */
function dropGone(
  budget: Budget,
  body: { metadata: object; status: { disruptedPods: Record<string, string> | null } },
) {
  const { disruptedPods } = body.status;
  if (disruptedPods === null) return body;
  const before = Object.keys(budget.status?.disruptedPods ?? {}).map((name) => [name, null] as const);
  return {
    ...body,
    status: { ...body.status, disruptedPods: { ...Object.fromEntries(before), ...disruptedPods } },
  };
}
