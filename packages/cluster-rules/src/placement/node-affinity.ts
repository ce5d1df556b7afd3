/** Which nodes a Pod asks for: nodeSelector and node affinity. */

import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { getOwn } from '@coracle/apimachinery/meta/own-property';
import type {
  Node,
  NodeSelector,
  NodeSelectorRequirement,
  NodeSelectorTerm,
  Pod,
} from '@coracle/apimachinery/types/types';

type Labels = Readonly<Record<string, string>>;

const labelOf = (labels: Labels, key: string): string | undefined => getOwn(labels, key) as string | undefined;

const INTEGER = /^[+-]?[0-9]{1,18}$/;

function meets({ operator, values = [] }: DeepReadonly<NodeSelectorRequirement>, value: string | undefined): boolean {
  switch (operator) {
    case 'In':
      return value !== undefined && values.includes(value);
    case 'NotIn':
      return value === undefined || !values.includes(value);
    case 'Exists':
      return value !== undefined;
    case 'DoesNotExist':
      return value === undefined;
    case 'Gt':
    case 'Lt': {
      const bound = values[0];
      if (value === undefined || bound === undefined || !INTEGER.test(value) || !INTEGER.test(bound)) return false;
      return operator === 'Gt' ? BigInt(value) > BigInt(bound) : BigInt(value) < BigInt(bound);
    }
    default:
      return false;
  }
}

/** True when the node meets every requirement of the term. A term without requirements matches no node. */
export function matchesTerm(node: DeepReadonly<Node>, term: DeepReadonly<NodeSelectorTerm>): boolean {
  const { matchExpressions = [], matchFields = [] } = term;
  if (matchExpressions.length === 0 && matchFields.length === 0) return false;
  const labels = node.metadata.labels ?? {};
  // metadata.name is the only field there is.
  return (
    matchExpressions.every((one) => meets(one, labelOf(labels, one.key))) &&
    matchFields.every((one) => meets(one, one.key === 'metadata.name' ? node.metadata.name : undefined))
  );
}

/** True when the node meets any of the terms. */
export const matchesNodeSelector = (node: DeepReadonly<Node>, selector: DeepReadonly<NodeSelector>): boolean =>
  selector.nodeSelectorTerms.some((term) => matchesTerm(node, term));

/** True when the node is one the Pod asks for: every nodeSelector label, and the required affinity if there is one. */
export function matchesNodeAffinity(pod: DeepReadonly<Pod>, node: DeepReadonly<Node>): boolean {
  const labels = node.metadata.labels ?? {};
  for (const [key, value] of Object.entries(pod.spec.nodeSelector ?? {})) {
    if (labelOf(labels, key) !== value) return false;
  }
  const required = pod.spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  return required === undefined || matchesNodeSelector(node, required);
}

/** The sum of the weights of the preferred terms the node meets. */
export function preferredNodeWeight(pod: DeepReadonly<Pod>, node: DeepReadonly<Node>): number {
  let weight = 0;
  for (const term of pod.spec.affinity?.nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? []) {
    if (matchesTerm(node, term.preference)) weight += term.weight;
  }
  return weight;
}
