/** Limits that a launcher Pod gets from its namespace where its guest names none: pure. */

import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { fromLabelSelectorObject, matchesLabels } from '@coracle/apimachinery/selector/label-selector';
import type { LabelSelector, ReadonlyPod, ResourceQuota } from '@coracle/apimachinery/types/types';
import { amountOf } from '@coracle/cluster-rules/placement/pod-requests';
import type { NamespaceLimits } from './launcher-resources.ts';

/** Label of a namespace: the limit of memory is so many times what a Pod asks for. */
export const AUTO_MEMORY_RATIO_LABEL = 'alpha.kubevirt.io/auto-memory-limits-ratio';
const MEMORY_RATIO = 2;

/** The selector of the KubeVirt object and what is known of the namespace. */
export interface NamespaceFacts {
  /** `autoCPULimitNamespaceLabelSelector`. */
  readonly selector: DeepReadonly<LabelSelector> | undefined;
  readonly labels: Readonly<Record<string, string>> | undefined;
  readonly quotas: readonly DeepReadonly<ResourceQuota>[];
}

/** Which of a namespace's limits are counted by a quota: a Pod without them would be refused. */
export const limitedBy = (quotas: NamespaceFacts['quotas'], resource: 'cpu' | 'memory'): boolean =>
  quotas.some(({ spec }) => spec?.hard?.[`limits.${resource}`] !== undefined);

/** What a Pod made now gets. A ratio that is no number, or below one, counts as none. */
export function namespaceLimits({ selector, labels, quotas }: NamespaceFacts): NamespaceLimits {
  const ratio = Number(labels?.[AUTO_MEMORY_RATIO_LABEL]);
  return {
    limitsCpu:
      limitedBy(quotas, 'cpu') || (selector !== undefined && matchesLabels(fromLabelSelectorObject(selector), labels)),
    memoryLimitRatio: limitedBy(quotas, 'memory') ? (ratio >= 1 ? ratio : MEMORY_RATIO) : undefined,
  };
}

/** The same of a Pod that is there: what its namespace gave the guest at its start goes with it, and grows with it. */
export function namespaceLimitsOf(pod: ReadonlyPod): NamespaceLimits {
  const { requests, limits } = pod.spec.containers.find(({ name }) => name === 'compute')?.resources ?? {};
  const [request, limit] = [requests?.['memory'], limits?.['memory']];
  return {
    limitsCpu: limits?.['cpu'] !== undefined,
    memoryLimitRatio:
      request !== undefined && limit !== undefined
        ? amountOf('memory', String(limit)) / amountOf('memory', String(request))
        : undefined,
  };
}
