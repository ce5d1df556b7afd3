/** What becomes of a Pod between its defaults and its store (pod/strategy.go). */
import { formatTime } from '@coracle/apimachinery/meta/object';
import {
  isObject,
  type JsonObject,
  listAt,
  numberAt,
  objectAt,
  objectsAt,
  textAt,
  textsAt,
} from '@coracle/apimachinery/types/read-value';

export function prepareNewPod(pod: Record<string, unknown>, { now }: { readonly now: number }): void {
  if (!isObject(pod['spec'])) return;
  markGated(pod, now);
  mergeLabelKeys(pod);
}

/** The scheduler does not look at a Pod with gates: its condition is there from the start. */
function markGated(pod: Record<string, unknown>, now: number): void {
  if (listAt(pod, 'spec', 'schedulingGates').length === 0) return;
  const conditions = listAt(pod, 'status', 'conditions');
  if (conditions.some((condition) => textAt(condition, 'type') === 'PodScheduled')) return;
  const gated = {
    type: 'PodScheduled',
    status: 'False',
    lastProbeTime: null,
    lastTransitionTime: formatTime(now),
    reason: 'SchedulingGated',
    message: 'Scheduling is blocked due to non-empty scheduling gates',
  };
  pod['status'] = { ...objectAt(pod, 'status'), conditions: [...conditions, gated] };
}

const REQUIRED = 'requiredDuringSchedulingIgnoredDuringExecution';
const PREFERRED = 'preferredDuringSchedulingIgnoredDuringExecution';

/** Values of the labels that terms and constraints name by key go into their selectors. */
function mergeLabelKeys(pod: Record<string, unknown>): void {
  const labels = objectAt(pod, 'metadata', 'labels');
  const merged = (term: unknown): unknown => (isObject(term) ? withLabelKeys(term, labels) : term);
  const preferred = (item: unknown): unknown =>
    isObject(item) ? { ...item, podAffinityTerm: merged(item['podAffinityTerm']) } : item;
  const withList = (holder: JsonObject, list: string, change: (item: unknown) => unknown): JsonObject =>
    Array.isArray(holder[list]) ? { ...holder, [list]: holder[list].map(change) } : holder;
  const spec = { ...withList(objectAt(pod, 'spec'), 'topologySpreadConstraints', merged) };
  if (isObject(spec['affinity'])) {
    const affinity: Record<string, unknown> = { ...spec['affinity'] };
    for (const name of ['podAffinity', 'podAntiAffinity']) {
      const part = affinity[name];
      if (isObject(part)) affinity[name] = withList(withList(part, REQUIRED, merged), PREFERRED, preferred);
    }
    spec['affinity'] = affinity;
  }
  pod['spec'] = spec;
}

/** A term without a selector selects nothing, and goes on so. */
function withLabelKeys(term: JsonObject, labels: JsonObject): JsonObject {
  const selector = term['labelSelector'];
  if (!isObject(selector)) return term;
  const requirements = [
    ...textsAt(term, 'matchLabelKeys').map((key) => ({ key, operator: 'In' })),
    ...textsAt(term, 'mismatchLabelKeys').map((key) => ({ key, operator: 'NotIn' })),
  ].flatMap((one) => (typeof labels[one.key] === 'string' ? [{ ...one, values: [labels[one.key]] }] : []));
  if (requirements.length === 0) return term;
  const matchExpressions = [...listAt(selector, 'matchExpressions'), ...requirements];
  return { ...term, labelSelector: { ...selector, matchExpressions } };
}

/** Agents of old do not know `observedGeneration`: what they leave out stays, of conditions by type and in order. */
export function keepObserved(pod: Record<string, unknown>, old: JsonObject): void {
  const before = Map.groupBy(objectsAt(old, 'status', 'conditions'), (condition) => textAt(condition, 'type'));
  const status: Record<string, unknown> = { ...objectAt(pod, 'status') };
  const observed = numberAt(old, 'status', 'observedGeneration');
  if (numberAt(status, 'observedGeneration') === 0 && observed !== 0) status['observedGeneration'] = observed;
  if (Array.isArray(status['conditions'])) {
    status['conditions'] = status['conditions'].map((condition) => {
      const kept = numberAt(before.get(textAt(condition, 'type'))?.shift(), 'observedGeneration');
      if (!isObject(condition) || kept === 0 || numberAt(condition, 'observedGeneration') !== 0) return condition;
      return { ...condition, observedGeneration: kept };
    });
  }
  pod['status'] = status;
}
