/** One node as the placement rules see it: what it offers, who is on it, what they take. */

import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { hasEnded } from '@coracle/apimachinery/meta/object-state';
import { getOwn } from '@coracle/apimachinery/meta/own-property';
import type { Node, Pod } from '@coracle/apimachinery/types/types';
import { type Amounts, addAmounts, amountsOf, podRequests, scoringRequests } from './pod-requests.ts';

export interface NodeUsage {
  readonly node: DeepReadonly<Node>;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly allocatable: Amounts;
  /** Pods bound or about to be, without those that have ended. */
  readonly pods: readonly DeepReadonly<Pod>[];
  readonly requested: Amounts;
  /** With defaults for Pods that request nothing: for scores. */
  readonly scored: { readonly cpu: number; readonly memory: number };
}

/** The domain of a topology that the node is in: the value of its label. */
export const domainOf = ({ labels }: NodeUsage, topologyKey: string): string | undefined =>
  getOwn(labels, topologyKey) as string | undefined;

/** Sums up a node and the Pods on it. */
export function nodeUsage(node: DeepReadonly<Node>, pods: readonly DeepReadonly<Pod>[]): NodeUsage {
  const alive = pods.filter((pod) => !hasEnded(pod));
  const requested = new Map<string, number>();
  const scored = { cpu: 0, memory: 0 };
  for (const pod of alive) {
    addAmounts(requested, podRequests(pod));
    const { cpu, memory } = scoringRequests(pod);
    scored.cpu += cpu;
    scored.memory += memory;
  }
  return {
    node,
    name: node.metadata.name ?? '',
    labels: node.metadata.labels ?? {},
    allocatable: amountsOf(node.status?.allocatable ?? node.status?.capacity),
    pods: alive,
    requested,
    scored,
  };
}
