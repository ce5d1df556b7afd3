/**
 * Which Pods a Pod wants beside it, and which not: required and preferred terms of (anti-)affinity, by topology key.
 * Two nodes are in one domain when they carry the topology key with one value; a node without the key is in none.
 */

import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { getOwn } from '@coracle/apimachinery/meta/own-property';
import {
  fromLabelSelectorObject,
  type LabelSelector,
  type LabelSelectorObject,
  matchesLabels,
  NOTHING,
} from '@coracle/apimachinery/selector/label-selector';
import type { Pod, PodAffinityTerm } from '@coracle/apimachinery/types/types';
import type { NodeUsage } from './node-usage.ts';

/** Labels of a namespace, for namespaceSelector. */
export type NamespaceLabels = (namespace: string) => Readonly<Record<string, string>> | undefined;

interface Term {
  readonly matches: (pod: DeepReadonly<Pod>) => boolean;
  readonly topologyKey: string;
}

/** A selector no API server would have accepted selects nothing: one bad Pod must not stop the placing of all others. */
function readSelector(object: LabelSelectorObject | undefined): LabelSelector {
  try {
    return fromLabelSelectorObject(object);
  } catch {
    return NOTHING;
  }
}

const selectorOf = (term: DeepReadonly<PodAffinityTerm>, owner: DeepReadonly<Pod>): LabelSelector => {
  const selector = readSelector(term.labelSelector);
  if (selector.nothing) return selector;
  const labels = owner.metadata.labels ?? {};
  const extra = [
    ...(term.matchLabelKeys ?? []).map((key) => ({ key, operator: 'in' as const })),
    ...(term.mismatchLabelKeys ?? []).map((key) => ({ key, operator: 'notin' as const })),
  ].flatMap(({ key, operator }) => {
    const value = getOwn(labels, key);
    return typeof value === 'string' ? [{ key, operator, values: [value] }] : [];
  });
  return { requirements: [...selector.requirements, ...extra] };
};

function compile(
  term: DeepReadonly<PodAffinityTerm>,
  owner: DeepReadonly<Pod>,
  namespaceLabels: NamespaceLabels,
): Term {
  const selector = selectorOf(term, owner);
  const named = term.namespaces ?? [];
  const byLabel = term.namespaceSelector === undefined ? undefined : readSelector(term.namespaceSelector);
  const own = owner.metadata.namespace ?? '';
  const inScope = (namespace: string): boolean => {
    // Neither list nor selector: the Pod's own namespace.
    if (named.length === 0 && byLabel === undefined) return namespace === own;
    return named.includes(namespace) || (byLabel !== undefined && matchesLabels(byLabel, namespaceLabels(namespace)));
  };
  return {
    topologyKey: term.topologyKey,
    matches: (pod) => inScope(pod.metadata.namespace ?? '') && matchesLabels(selector, pod.metadata.labels),
  };
}

const domainOf = (node: NodeUsage, topologyKey: string): string | undefined =>
  getOwn(node.labels, topologyKey) as string | undefined;

/** Domain value -> how many Pods in it match. */
function countByDomain(term: Term, nodes: readonly NodeUsage[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const node of nodes) {
    const domain = domainOf(node, term.topologyKey);
    if (domain === undefined) continue;
    const found = node.pods.filter(term.matches).length;
    if (found > 0) counts.set(domain, (counts.get(domain) ?? 0) + found);
  }
  return counts;
}

/** What is wrong with a node for a Pod's required terms. */
export type PodAffinityResult = 'fits' | 'affinity' | 'anti-affinity' | 'existing-anti-affinity';

export interface PodAffinityRules {
  check(node: NodeUsage): PodAffinityResult;
  /** Sum of the weights of preferred terms met on the node, anti-affinity counted negative. */
  preference(node: NodeUsage): number;
}

const NO_RULES: PodAffinityRules = { check: () => 'fits', preference: () => 0 };

/** Reads the terms of the Pod and of the Pods already placed once, to be asked for each node. */
export function podAffinityRules(
  pod: DeepReadonly<Pod>,
  nodes: readonly NodeUsage[],
  namespaceLabels: NamespaceLabels,
): PodAffinityRules {
  const wanted = pod.spec.affinity?.podAffinity;
  const unwanted = pod.spec.affinity?.podAntiAffinity;
  /** Domains that the anti-affinity of Pods already there closes to this one: key and value. */
  const closed: { topologyKey: string; domain: string }[] = [];
  for (const node of nodes) {
    for (const placed of node.pods) {
      for (const term of placed.spec.affinity?.podAntiAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? []) {
        const domain = domainOf(node, term.topologyKey);
        if (domain === undefined || !compile(term, placed, namespaceLabels).matches(pod)) continue;
        closed.push({ topologyKey: term.topologyKey, domain });
      }
    }
  }
  if (wanted === undefined && unwanted === undefined && closed.length === 0) return NO_RULES;

  const prepare = (term: DeepReadonly<PodAffinityTerm>) => {
    const compiled = compile(term, pod, namespaceLabels);
    return { ...compiled, counts: countByDomain(compiled, nodes) };
  };
  const required = (wanted?.requiredDuringSchedulingIgnoredDuringExecution ?? []).map(prepare);
  const forbidden = (unwanted?.requiredDuringSchedulingIgnoredDuringExecution ?? []).map(prepare);
  const weighted = [
    ...(wanted?.preferredDuringSchedulingIgnoredDuringExecution ?? []).map((one) => ({ sign: 1, one })),
    ...(unwanted?.preferredDuringSchedulingIgnoredDuringExecution ?? []).map((one) => ({ sign: -1, one })),
  ].map(({ sign, one }) => ({ ...prepare(one.podAffinityTerm), weight: sign * one.weight }));
  // The first Pod of a group that wants its own kind beside it may go anywhere, or none ever could.
  const first = required.every((term) => term.counts.size === 0) && required.every((term) => term.matches(pod));

  return {
    check(node) {
      for (const { topologyKey, domain } of closed) {
        if (domainOf(node, topologyKey) === domain) return 'existing-anti-affinity';
      }
      for (const { topologyKey, counts } of forbidden) {
        const domain = domainOf(node, topologyKey);
        if (domain !== undefined && (counts.get(domain) ?? 0) > 0) return 'anti-affinity';
      }
      for (const { topologyKey, counts } of required) {
        const domain = domainOf(node, topologyKey);
        if (domain === undefined || (!first && (counts.get(domain) ?? 0) === 0)) return 'affinity';
      }
      return 'fits';
    },
    preference(node) {
      let sum = 0;
      for (const { topologyKey, counts, weight } of weighted) {
        const domain = domainOf(node, topologyKey);
        if (domain !== undefined) sum += weight * (counts.get(domain) ?? 0);
      }
      return sum;
    },
  };
}
