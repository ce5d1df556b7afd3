/** Where a Pod goes: filters, then scores. Pure; the scheduler feeds it what its informers show. */

import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import type { Pod } from '@coracle/apimachinery/types/types';
import { clusterRules, filterNode } from './filter.ts';
import type { NodeUsage } from './node-usage.ts';
import type { NamespaceLabels } from './pod-affinity.ts';
import type { PodVolumes } from './pod-volumes.ts';
import { final, type Refusal } from './refusal.ts';
import { scoreNodes } from './score.ts';

export type Placement =
  | { readonly type: 'node'; readonly name: string }
  | {
      readonly type: 'unschedulable';
      /** What the PodScheduled condition says, without what preemption adds. */
      readonly message: string;
      /** By node name. */
      readonly refusals: ReadonlyMap<string, Refusal>;
    };

export interface PlacementOptions {
  /** Labels of namespaces, for affinity terms with a namespaceSelector; none are known when absent. */
  readonly namespaceLabels?: NamespaceLabels;
  /** What the claims of the Pod say; nothing when absent. */
  readonly volumes?: PodVolumes | undefined;
  /** Taken when it fits, whatever the scores say: where Pods were asked to make room for this one. */
  readonly nominated?: string | undefined;
}

/** Chooses the best node that fits; among equals the first by name. */
export function placePod(
  pod: DeepReadonly<Pod>,
  nodes: readonly NodeUsage[],
  options: PlacementOptions = {},
): Placement {
  if (nodes.length === 0)
    return { type: 'unschedulable', message: 'no nodes available to schedule pods', refusals: new Map() };
  const rules = clusterRules(pod, nodes, {
    namespaceLabels: options.namespaceLabels ?? (() => undefined),
    volumes: options.volumes,
  });
  const refusals = new Map<string, Refusal>();
  const refused = options.volumes?.refusal;
  if (refused !== undefined) {
    for (const { name } of nodes) refusals.set(name, final(refused));
    return { type: 'unschedulable', message: `0/${nodes.length} nodes are available: ${refused}.`, refusals };
  }
  const fitting: NodeUsage[] = [];
  for (const usage of nodes) {
    const refusal = filterNode(pod, usage, rules);
    if (refusal) refusals.set(usage.name, refusal);
    else if (usage.name === options.nominated) return { type: 'node', name: usage.name };
    else fitting.push(usage);
  }
  if (fitting.length === 0) {
    const reasons = refusals.values().flatMap((refusal) => refusal.reasons);
    return { type: 'unschedulable', message: refusalMessage(nodes.length, reasons), refusals };
  }
  const scores = scoreNodes(pod, fitting, rules);
  let best = 0;
  for (let i = 1; i < fitting.length; i++) {
    const better = scores[i]! - scores[best]!;
    if (better > 0 || (better === 0 && fitting[i]!.name < fitting[best]!.name)) best = i;
  }
  return { type: 'node', name: fitting[best]!.name };
}

/** `0/3 nodes are available: 1 Insufficient memory, 2 node(s) were unschedulable.` */
export function refusalMessage(nodes: number, reasons: Iterable<string>): string {
  const counted = Array.from(Map.groupBy(reasons, String), ([reason, { length }]) => `${length} ${reason}`).sort();
  return `0/${nodes} nodes are available: ${counted.join(', ')}.`;
}
