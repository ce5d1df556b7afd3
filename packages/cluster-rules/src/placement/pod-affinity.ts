/**
 * Which Pods a Pod wants beside it, and which not: required and preferred terms of (anti-)affinity, by topology key.
 * Two nodes are in one domain when they carry the topology key with one value; a node without the key is in none.
 */

import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { getOwn } from '@coracle/apimachinery/meta/own-property';
import { type LabelSelector, matchesLabels, readableSelector } from '@coracle/apimachinery/selector/label-selector';
import type { Pod, PodAffinityTerm } from '@coracle/apimachinery/types/types';
import { domainOf, type NodeUsage } from './node-usage.ts';
import { final, forNow, type Refusal } from './refusal.ts';

/** Labels of a namespace, for namespaceSelector. */
export type NamespaceLabels = (namespace: string) => Readonly<Record<string, string>> | undefined;

type Term = DeepReadonly<PodAffinityTerm>;
type SelectorField = 'labelSelector' | 'matchLabelKeys' | 'mismatchLabelKeys';

interface CompiledTerm {
  readonly matches: (pod: DeepReadonly<Pod>) => boolean;
  readonly topologyKey: string;
}

/** The Pods that a term or a constraint of `owner` is about: by its selector, and by labels that they share with `owner` or not. */
export function selectorOf(
  { labelSelector, matchLabelKeys = [], mismatchLabelKeys = [] }: Pick<Term, SelectorField>,
  owner: DeepReadonly<Pod>,
): LabelSelector {
  const selector = readableSelector(labelSelector);
  if (selector.nothing) return selector;
  const owned = (keys: readonly string[], operator: 'in' | 'notin') =>
    keys.flatMap((key) => {
      const value = getOwn(owner.metadata.labels ?? {}, key);
      return typeof value === 'string' ? [{ key, operator, values: [value] }] : [];
    });
  const extra = [...owned(matchLabelKeys, 'in'), ...owned(mismatchLabelKeys, 'notin')];
  return { requirements: [...selector.requirements, ...extra] };
}

function compile(term: Term, owner: DeepReadonly<Pod>, namespaceLabels: NamespaceLabels): CompiledTerm {
  const selector = selectorOf(term, owner);
  const named = term.namespaces ?? [];
  const byLabel = term.namespaceSelector === undefined ? undefined : readableSelector(term.namespaceSelector);
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

/** Domain value -> how many Pods in it match. */
function countByDomain(term: CompiledTerm, nodes: readonly NodeUsage[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const node of nodes) {
    const domain = domainOf(node, term.topologyKey);
    if (domain === undefined) continue;
    const found = node.pods.filter(term.matches).length;
    if (found > 0) counts.set(domain, (counts.get(domain) ?? 0) + found);
  }
  return counts;
}

export interface PodAffinityRules {
  /** What is wrong with a node for a Pod's required terms. */
  check(node: NodeUsage): Refusal | undefined;
  /** Sum of the weights of preferred terms met on the node, anti-affinity counted negative. */
  preference(node: NodeUsage): number;
}

const NO_RULES: PodAffinityRules = { check: () => undefined, preference: () => 0 };

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

  const prepare = (term: Term) => {
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
      if (closed.some(({ topologyKey, domain }) => domainOf(node, topologyKey) === domain))
        return forNow("node(s) didn't satisfy existing pods anti-affinity rules");
      if (forbidden.some((term) => matching(term, node) > 0))
        return forNow("node(s) didn't match pod anti-affinity rules");
      const isUnmet = (term: Counted): boolean =>
        domainOf(node, term.topologyKey) === undefined || (!first && matching(term, node) === 0);
      return required.some(isUnmet) ? final("node(s) didn't match pod affinity rules") : undefined;
    },
    preference: (node) => weighted.reduce((sum, term) => sum + term.weight * matching(term, node), 0),
  };
}

type Counted = Pick<CompiledTerm, 'topologyKey'> & { readonly counts: ReadonlyMap<string, number> };

/** How many Pods in the domain of the node match; none where it is in no domain. */
function matching({ topologyKey, counts }: Counted, node: NodeUsage): number {
  const domain = domainOf(node, topologyKey);
  return domain === undefined ? 0 : (counts.get(domain) ?? 0);
}
