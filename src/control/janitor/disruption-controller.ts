/**
 * Counts the healthy Pods of each PodDisruptionBudget and says how many may go (pkg/controller/disruption). Evictions
 * read that number; without this controller every budget would hold for ever.
 */
import type { PolicyRule } from '../../api/kinds/builtin/access-types.ts';
import { POD_DISRUPTION_BUDGETS, PODS, REPLICA_SETS } from '../../api/kinds/builtin/resource-types.ts';
import type { IntOrString, Pod, PodDisruptionBudget, ReplicaSet } from '../../api/kinds/builtin/types.ts';
import { deepEqual } from '../../api/meta/deep-equal.ts';
import { type DeepReadonly, formatTime } from '../../api/meta/object.ts';
import { fromLabelSelectorObject, type LabelSelectorObject, matchesLabels } from '../../api/selector/label-selector.ts';
import { isNotFound } from '../../client/api-failure.ts';
import {
  type Controller,
  createController,
  DONE,
  ownKeys,
  requeueAfter,
  source,
} from '../../client/controller/controller.ts';
import type { ControllerEnvironment } from '../../client/controller/environment.ts';

export const disruptionRules: PolicyRule[] = [
  { apiGroups: ['policy'], resources: ['poddisruptionbudgets'], verbs: ['list', 'watch'] },
  { apiGroups: ['policy'], resources: ['poddisruptionbudgets/status'], verbs: ['patch'] },
  { apiGroups: [''], resources: ['pods'], verbs: ['list', 'watch'] },
  { apiGroups: ['apps'], resources: ['replicasets'], verbs: ['list', 'watch'] },
];

/** An eviction that was granted and did not end in a deletion by then is forgotten. */
const DELETION_TIMEOUT_MS = 120_000;

type Budget = DeepReadonly<PodDisruptionBudget>;

export interface BudgetFacts {
  /** The Pods the budget selects. */
  readonly pods: readonly DeepReadonly<Pod>[];
  /** How many Pods there should be; undefined when their owners do not say. */
  readonly expected: number | undefined;
  readonly now: number;
}

/** True when the budget selects the Pod; one with an empty or broken selector selects none. */
export function selectsPod(budget: Budget, pod: DeepReadonly<Pod>): boolean {
  const { matchLabels = {}, matchExpressions = [] } = budget.spec?.selector ?? {};
  if (Object.keys(matchLabels).length === 0 && matchExpressions.length === 0) return false;
  try {
    const selector = fromLabelSelectorObject(budget.spec!.selector as LabelSelectorObject);
    return matchesLabels(selector, pod.metadata.labels ?? {});
  } catch {
    return false;
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
  const known = expected ?? 0;
  const desired =
    maxUnavailable !== undefined
      ? Math.max(0, known - scaled(maxUnavailable, known))
      : scaled(minAvailable ?? 1, known);
  const allowed = expected === undefined || expected === 0 ? 0 : Math.max(0, healthy - desired);
  const reason = expected === undefined ? 'SyncFailed' : allowed > 0 ? 'SufficientPods' : 'InsufficientPods';
  const message = expected === undefined ? 'the owners of the selected pods do not say how many there should be' : '';
  return {
    observedGeneration: budget.metadata.generation ?? 0,
    disruptionsAllowed: allowed,
    currentHealthy: healthy,
    desiredHealthy: desired,
    expectedPods: known,
    ...(Object.keys(disruptedPods).length > 0 && { disruptedPods }),
    conditions: withCondition(budget, { status: allowed > 0 ? 'True' : 'False', reason, message, now }),
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
  { now, ...wanted }: { status: 'True' | 'False'; reason: string; message: string; now: number },
) {
  const all = budget.status?.conditions ?? [];
  const known = all.find(({ type }) => type === 'DisruptionAllowed');
  const lastTransitionTime =
    known?.status === wanted.status ? (known.lastTransitionTime ?? formatTime(now)) : formatTime(now);
  const others = all.filter(({ type }) => type !== 'DisruptionAllowed');
  const observedGeneration = budget.metadata.generation ?? 0;
  return [...others, { type: 'DisruptionAllowed', ...wanted, lastTransitionTime, observedGeneration }] as NonNullable<
    NonNullable<PodDisruptionBudget['status']>['conditions']
  >;
}

/** Makes the controller; its keys are budgets. */
export function createDisruptionController(environment: ControllerEnvironment): Controller {
  const { client, informers, clock, log } = environment;
  const budgets = informers.of(POD_DISRUPTION_BUDGETS);
  const pods = informers.of(PODS);
  const replicaSets = informers.of(REPLICA_SETS);
  const within = (namespace: string | undefined) => budgets.list(namespace ?? '');
  const keyOf = ({ metadata }: Budget) => ({ namespace: metadata.namespace ?? '', name: metadata.name ?? '' });

  /** How many Pods their owners want. Undefined when one owner is of a kind that does not say. */
  const expectedPods = (selected: readonly DeepReadonly<Pod>[]): number | undefined => {
    let sum = 0;
    const seen = new Set<string>();
    for (const { metadata } of selected) {
      const owner = metadata.ownerReferences?.find(({ controller }) => controller);
      if (owner?.kind !== 'ReplicaSet') return undefined;
      if (seen.has(owner.uid)) continue;
      seen.add(owner.uid);
      const found: DeepReadonly<ReplicaSet> | undefined = replicaSets.get({
        namespace: metadata.namespace ?? '',
        name: owner.name,
      });
      sum += found?.spec?.replicas ?? 0;
    }
    return sum;
  };

  return createController({
    name: 'disruption-controller',
    client,
    clock,
    log,
    concurrency: 4,
    sources: [
      ownKeys(budgets),
      // A Pod that lost the label it was selected by leaves its budget unasked until the next change of either.
      source(pods, (pod) =>
        within(pod.metadata.namespace)
          .filter((budget) => selectsPod(budget, pod))
          .map(keyOf),
      ),
      source(replicaSets, (set) => within(set.metadata.namespace).map(keyOf)),
    ],
    async reconcile(key, { signal }) {
      const budget = budgets.get(key);
      if (!budget || budget.metadata.deletionTimestamp !== undefined) return DONE;
      const selected = pods.list(key.namespace).filter((pod) => selectsPod(budget, pod));
      const now = clock.now();
      const status = budgetStatus(budget, { pods: selected, expected: expectedPods(selected), now });
      if (!deepEqual(status, budget.status)) {
        const { resourceVersion } = budget.metadata;
        const body = { metadata: { resourceVersion }, status: { disruptedPods: null, ...status } };
        try {
          await client.patch(
            POD_DISRUPTION_BUDGETS,
            key,
            { type: 'merge', body: dropGone(budget, body) },
            {
              subresource: 'status',
              signal,
            },
          );
        } catch (error) {
          if (!isNotFound(error)) throw error;
        }
      }
      return status.disruptedPods ? requeueAfter(DELETION_TIMEOUT_MS) : DONE;
    },
  });
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
