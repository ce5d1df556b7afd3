/**
 * What PodDisruptionBudgets say to an eviction (core/pod/storage/eviction.go). The budget's status is what the
 * disruption controller last counted; an eviction takes its share by lowering `disruptionsAllowed` itself.
 */

import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import { formatTime, type UnstructuredObject } from '@coracle/apimachinery/meta/object';
import { isDeleting, isFinal } from '@coracle/apimachinery/meta/object-state';
import { ApiError, forbidden, type StatusCause } from '@coracle/apimachinery/meta/status';
import { fromLabelSelectorObject, matchesLabels } from '@coracle/apimachinery/selector/label-selector';
import type { PodDisruptionBudget, PodParts } from '@coracle/apimachinery/types/types';
import type { ObjectStore, StoredObject } from '../cache/object-store.ts';

const BUDGETS_PREFIX = 'policy/poddisruptionbudgets';
const REFUSED = "Cannot evict pod as it would violate the pod's disruption budget.";
const PROCESSING_RETRY_SECONDS = 10;
/** Evictions granted and not yet seen by the disruption controller. */
const MAX_DISRUPTED_PODS = 2000;

type BudgetParts = Partial<PodDisruptionBudget>;

/** A pod that has not begun may begin meanwhile, and then count: it may go only as it was seen. */
export const mustNotChange = (pod: Readonly<UnstructuredObject>): boolean =>
  pod.metadata.deletionTimestamp === undefined && (pod as PodParts).status?.phase === 'Pending';

/** Pods that have not begun, have ended or are on their way out disturb nobody. */
export function needsNoBudget(pod: Readonly<UnstructuredObject>): boolean {
  const phase = (pod as PodParts).status?.phase;
  return isDeleting(pod) || phase === 'Pending' || isFinal(phase);
}

export type BudgetDecision =
  /** No budget has a say, or the pod is not ready and the budget does not count it. */
  | { readonly type: 'allowed'; readonly pinned: boolean; readonly budget: string }
  /** One share of the budget has to be taken first. */
  | { readonly type: 'take'; readonly budget: StoredObject };

/** Asks the budgets of the pod's namespace. Throws ApiError 500 when more than one selects the pod. */
export function budgetDecision(store: Pick<ObjectStore, 'list'>, pod: Readonly<UnstructuredObject>): BudgetDecision {
  const budgets = store
    .list(BUDGETS_PREFIX, { namespace: pod.metadata.namespace ?? '' })
    .items.filter((item) => selects(item.object as BudgetParts, pod));
  if (budgets.length > 1) {
    throw new ApiError({
      code: 500,
      message: 'This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.',
    });
  }
  const [budget] = budgets;
  if (!budget) return { type: 'allowed', pinned: false, budget: '' };
  const { spec, status = {} } = budget.object as BudgetParts;
  const { currentHealthy = 0, desiredHealthy = 0 } = status;
  const enough = currentHealthy >= desiredHealthy && desiredHealthy > 0;
  if (!isReady(pod) && (spec?.unhealthyPodEvictionPolicy === 'AlwaysAllow' || enough)) {
    return { type: 'allowed', pinned: true, budget: budget.name };
  }
  return { type: 'take', budget };
}

/** An empty selector selects every pod of the namespace; none, or a broken one, selects nothing. */
function selects({ spec }: BudgetParts, pod: Readonly<UnstructuredObject>): boolean {
  if (!spec?.selector) return false;
  try {
    return matchesLabels(fromLabelSelectorObject(spec.selector), pod.metadata.labels ?? {});
  } catch {
    return false;
  }
}

const isReady = (pod: Readonly<UnstructuredObject>): boolean =>
  (pod as PodParts).status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') === true;

/** The budget with one disruption taken for `pod`. Throws ApiError 429 when there is none left, 403 when it is broken. */
export function withDisruption(
  budget: Readonly<UnstructuredObject>,
  { pod, now }: { readonly pod: string; readonly now: number },
): UnstructuredObject {
  const name = budget.metadata.name ?? '';
  const { status = {} } = budget as BudgetParts;
  const { disruptionsAllowed = 0, disruptedPods = {} } = status;
  if ((status.observedGeneration ?? 0) < (budget.metadata.generation ?? 0)) throw stillProcessing(name);
  const gr = { group: 'policy', resource: 'poddisruptionbudget' };
  if (disruptionsAllowed < 0) throw forbidden(gr, name, 'pdb disruptions allowed is negative');
  if (Object.keys(disruptedPods).length > MAX_DISRUPTED_PODS) {
    throw forbidden(gr, name, 'DisruptedPods map too big - too many evictions not confirmed by PDB controller');
  }
  if (disruptionsAllowed === 0) throw refused(whyNone(name, status));
  const next = cloneJson(budget) as UnstructuredObject & BudgetParts;
  next.status = { ...next.status, disruptionsAllowed: disruptionsAllowed - 1 };
  if (disruptionsAllowed === 1) {
    next.status.conditions = withCondition(next.status.conditions, {
      type: 'DisruptionAllowed',
      status: 'False',
      reason: 'InsufficientPods',
      message: '',
      lastTransitionTime: formatTime(now),
      observedGeneration: status.observedGeneration ?? 0,
    });
  }
  next.status.disruptedPods = { ...next.status.disruptedPods, [pod]: formatTime(now) };
  return next;
}

/** Why a budget allows no disruption, in upstream's words. */
function whyNone(name: string, status: NonNullable<BudgetParts['status']>): string {
  const { currentHealthy = 0, desiredHealthy = 0 } = status;
  const { reason = '', message = '' } =
    status.conditions?.find((one) => one.type === 'DisruptionAllowed' && one.status === 'False') ?? {};
  const none = `The disruption budget ${name} does not allow evicting pods currently`;
  // What was counted then says nothing.
  if (reason === 'SyncFailed' && message !== '') return `${none} because it failed sync: ${message}`;
  if (currentHealthy <= desiredHealthy)
    return `The disruption budget ${name} needs ${desiredHealthy} healthy pods and has ${currentHealthy} currently`;
  return message === '' ? none : `${none} (${reason}): ${message}`;
}

/** The conditions with this one in place of the one of its type. */
const withCondition = <C extends { readonly type: string }>(conditions: readonly C[] = [], condition: C): C[] => [
  ...conditions.filter(({ type }) => type !== condition.type),
  condition,
];

/** The pod with the condition that tells its owner why it goes. */
export function withDisruptionTarget(pod: Readonly<UnstructuredObject>, now: number): UnstructuredObject {
  const next = cloneJson(pod) as UnstructuredObject & PodParts;
  const conditions = withCondition(next.status?.conditions, {
    type: 'DisruptionTarget',
    status: 'True',
    reason: 'EvictionByEvictionAPI',
    message: 'Eviction API: evicting',
    lastTransitionTime: formatTime(now),
    observedGeneration: next.metadata.generation ?? 0,
  });
  next.status = { ...next.status, conditions };
  return next;
}

/** 429: the budget has changed since its pods were counted, or the pod since it was looked at. */
export const stillProcessing = (budget: string): ApiError =>
  refused(`The disruption budget ${budget} is still being processed by the server.`, PROCESSING_RETRY_SECONDS);

function refused(message: string, retryAfterSeconds = 0): ApiError {
  const causes: StatusCause[] = [{ reason: 'DisruptionBudget', message }];
  return new ApiError({
    code: 429,
    reason: 'TooManyRequests',
    message: REFUSED,
    details: { causes, ...(retryAfterSeconds > 0 && { retryAfterSeconds }) },
  });
}
