/** Where a Pod goes: filters, then scores. Pure; the scheduler feeds it what its informers show. */
import type { Pod } from '../../api/kinds/builtin/types.ts';
import type { DeepReadonly } from '../../api/meta/object.ts';
import { filterNode } from './filter.ts';
import type { NodeUsage } from './node-usage.ts';
import { type NamespaceLabels, podAffinityRules } from './pod-affinity.ts';
import { scoreNodes } from './score.ts';

export type Placement =
  | { readonly type: 'node'; readonly name: string }
  /** `message` is what the PodScheduled condition says. */
  | { readonly type: 'unschedulable'; readonly message: string };

export interface PlacementOptions {
  /** Labels of namespaces, for affinity terms with a namespaceSelector; none are known when absent. */
  readonly namespaceLabels?: NamespaceLabels;
}

/** Chooses the best node that fits; among equals the first by name. */
export function placePod(
  pod: DeepReadonly<Pod>,
  nodes: readonly NodeUsage[],
  options: PlacementOptions = {},
): Placement {
  if (nodes.length === 0) return { type: 'unschedulable', message: 'no nodes available to schedule pods' };
  const affinity = podAffinityRules(pod, nodes, options.namespaceLabels ?? (() => undefined));
  const refusals = new Map<string, number>();
  const fitting: NodeUsage[] = [];
  for (const usage of nodes) {
    const reasons = filterNode(pod, usage, affinity);
    if (reasons.length === 0) fitting.push(usage);
    for (const reason of reasons) refusals.set(reason, (refusals.get(reason) ?? 0) + 1);
  }
  if (fitting.length === 0) return { type: 'unschedulable', message: refusalMessage(nodes.length, refusals) };

  const scores = scoreNodes(pod, fitting, affinity);
  let best = 0;
  for (let i = 1; i < fitting.length; i++) {
    const better = scores[i]! - scores[best]!;
    if (better > 0 || (better === 0 && fitting[i]!.name < fitting[best]!.name)) best = i;
  }
  return { type: 'node', name: fitting[best]!.name };
}

/** `0/3 nodes are available: 1 Insufficient memory, 2 node(s) were unschedulable.` */
export function refusalMessage(nodes: number, refusals: ReadonlyMap<string, number>): string {
  const counted = [...refusals].map(([reason, count]) => `${count} ${reason}`).sort();
  return `0/${nodes} nodes are available: ${counted.join(', ')}.`;
}
