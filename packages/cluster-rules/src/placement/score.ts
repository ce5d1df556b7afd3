/** How good is a node for a Pod that fits? Higher is better; the parts and weights are kube-scheduler's defaults. */

import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import type { Pod } from '@coracle/apimachinery/types/types';
import type { ClusterRules } from './filter.ts';
import { preferredNodeWeight } from './node-affinity.ts';
import type { NodeUsage } from './node-usage.ts';
import { scoringRequests } from './pod-requests.ts';
import { untoleratedTaints } from './taints.ts';

const WEIGHTS = { leastAllocated: 1, balanced: 1, nodeAffinity: 2, podAffinity: 2, spread: 2, taints: 3 };

/** Scores of the nodes, in their order. */
export function scoreNodes(pod: DeepReadonly<Pod>, nodes: readonly NodeUsage[], rules: ClusterRules): number[] {
  const preferred = normalise(nodes.map(({ node }) => preferredNodeWeight(pod, node)));
  const beside = normalise(nodes.map((usage) => rules.affinity.preference(usage)));
  const avoided = normalise(nodes.map(({ node }) => -untoleratedTaints(pod, node, ['PreferNoSchedule']).length));
  const spread = rules.spread.scores(nodes);
  return nodes.map((usage, i) => {
    const { least, balanced } = allocationScores(pod, usage);
    return (
      WEIGHTS.leastAllocated * least +
      WEIGHTS.balanced * balanced +
      WEIGHTS.nodeAffinity * preferred[i]! +
      WEIGHTS.podAffinity * beside[i]! +
      WEIGHTS.spread * spread[i]! +
      WEIGHTS.taints * avoided[i]!
    );
  });
}

/**
 * 0 to 100 each. `least`: the mean share of cpu and memory left free with the Pod on it. `balanced`: how close the
 * shares of cpu and memory in use are to each other.
 */
export function allocationScores(pod: DeepReadonly<Pod>, usage: NodeUsage): { least: number; balanced: number } {
  const wanted = scoringRequests(pod);
  const share = (resource: 'cpu' | 'memory'): number => {
    const capacity = usage.allocatable.get(resource) ?? 0;
    return capacity <= 0 ? 1 : Math.min(1, (usage.scored[resource] + wanted[resource]) / capacity);
  };
  const cpu = share('cpu');
  const memory = share('memory');
  return { least: 100 * (1 - (cpu + memory) / 2), balanced: 100 * (1 - Math.abs(cpu - memory) / 2) };
}

/** Spreads values over 0 to 100; all equal gives all 0, so that what does not differ does not count. */
function normalise(values: readonly number[]): number[] {
  const low = Math.min(...values);
  const high = Math.max(...values);
  return values.map((value) => (high === low ? 0 : (100 * (value - low)) / (high - low)));
}
