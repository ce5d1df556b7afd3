/**
 * Topology spread constraints, as kube-scheduler's PodTopologySpread: no domain may be more than maxSkew Pods ahead of
 * the emptiest one. Which nodes count, and which Pods, is the constraint's own say. The scheduler's built-in soft
 * defaults (for Pods of a Service or ReplicaSet) are not applied: a launcher Pod is of neither.
 */

import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { isDeleting } from '@coracle/apimachinery/meta/object-state';
import { matchesLabels } from '@coracle/apimachinery/selector/label-selector';
import type { Pod, TopologySpreadConstraint } from '@coracle/apimachinery/types/types';
import { matchesNodeAffinity } from './node-affinity.ts';
import { domainOf, type NodeUsage } from './node-usage.ts';
import { selectorOf } from './pod-affinity.ts';
import { final, forNow, type Refusal } from './refusal.ts';
import { untoleratedTaint } from './taints.ts';

export interface SpreadRules {
  /** The DoNotSchedule constraints. */
  check(node: NodeUsage): Refusal | undefined;
  /** The ScheduleAnyway constraints: 0 to 100 each, in the order of the nodes; higher is emptier. */
  scores(nodes: readonly NodeUsage[]): number[];
}

type Constraint = DeepReadonly<TopologySpreadConstraint>;

const MISMATCH = "node(s) didn't match pod topology spread constraints";

const NO_RULES: SpreadRules = { check: () => undefined, scores: (nodes) => nodes.map(() => 0) };

/** Counts once, to be asked for each node. */
export function spreadRules(pod: DeepReadonly<Pod>, nodes: readonly NodeUsage[]): SpreadRules {
  const constraints = pod.spec.topologySpreadConstraints ?? [];
  if (constraints.length === 0) return NO_RULES;
  const hard = constraints.filter((one) => one.whenUnsatisfiable === 'DoNotSchedule');
  const soft = constraints.filter((one) => one.whenUnsatisfiable === 'ScheduleAnyway');
  const counted = countAll(pod, hard, nodes);
  return {
    check(node) {
      for (const { constraint, counts, fewest, self } of counted) {
        const domain = domainOf(node, constraint.topologyKey);
        if (domain === undefined) return final(`${MISMATCH} (missing required label)`);
        if ((counts.get(domain) ?? 0) + self - fewest > constraint.maxSkew) return forNow(MISMATCH);
      }
      return undefined;
    },
    scores: (candidates) => softScores(countAll(pod, soft, nodes), candidates),
  };
}

interface Counted {
  readonly constraint: Constraint;
  /** Domain value -> matching Pods in it. */
  readonly counts: ReadonlyMap<string, number>;
  /** Pods in the emptiest domain; 0 when there are fewer domains than minDomains. */
  readonly fewest: number;
  /** 1 when the Pod itself counts. */
  readonly self: number;
}

function countAll(
  pod: DeepReadonly<Pod>,
  constraints: readonly Constraint[],
  nodes: readonly NodeUsage[],
): readonly Counted[] {
  // A node takes part only when it has a place in every constraint's topology.
  const complete = nodes.filter((node) => constraints.every((one) => domainOf(node, one.topologyKey) !== undefined));
  return constraints.map((constraint) => {
    const selector = selectorOf(constraint, pod);
    const counts = new Map<string, number>();
    for (const node of complete) {
      if (!isIncluded(pod, node, constraint)) continue;
      const domain = domainOf(node, constraint.topologyKey)!;
      const found = node.pods.filter(
        (one) =>
          !isDeleting(one) &&
          one.metadata.namespace === pod.metadata.namespace &&
          matchesLabels(selector, one.metadata.labels),
      ).length;
      counts.set(domain, (counts.get(domain) ?? 0) + found);
    }
    const few = counts.size < (constraint.minDomains ?? 1);
    return {
      constraint,
      counts,
      fewest: few ? 0 : Math.min(...counts.values()),
      self: matchesLabels(selector, pod.metadata.labels) ? 1 : 0,
    };
  });
}

function isIncluded(pod: DeepReadonly<Pod>, { node }: NodeUsage, constraint: Constraint): boolean {
  if ((constraint.nodeAffinityPolicy ?? 'Honor') === 'Honor' && !matchesNodeAffinity(pod, node)) return false;
  return constraint.nodeTaintsPolicy !== 'Honor' || !untoleratedTaint(pod, node, ['NoSchedule', 'NoExecute']);
}

function softScores(counted: readonly Counted[], nodes: readonly NodeUsage[]): number[] {
  if (counted.length === 0) return nodes.map(() => 0);
  const load = nodes.map((node) => {
    let sum = 0;
    for (const { constraint, counts } of counted) {
      const domain = domainOf(node, constraint.topologyKey);
      if (domain === undefined) return undefined;
      // Many domains make each one's count small: upstream weighs by the logarithm of their number.
      sum += (counts.get(domain) ?? 0) * Math.log(counts.size + 2) + (constraint.maxSkew - 1);
    }
    return sum;
  });
  const known = load.filter((one) => one !== undefined);
  const high = Math.max(...known);
  const low = Math.min(...known);
  return load.map((one) => (one === undefined ? 0 : high === 0 ? 100 : (100 * (high + low - one)) / high));
}
