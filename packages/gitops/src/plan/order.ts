/** In which order objects are applied: what others usually need first, and never before what they depend on. */
import type { ObjectRef } from '../kinds/kinds.ts';
import { refId } from './object-ref.ts';

const FIRST = [
  'Namespace',
  'ResourceQuota',
  'StorageClass',
  'CustomResourceDefinition',
  'MutatingWebhookConfiguration',
  'ServiceAccount',
  'PodSecurityPolicy',
  'Role',
  'ClusterRole',
  'RoleBinding',
  'ClusterRoleBinding',
  'ConfigMap',
  'Secret',
  'Service',
  'LimitRange',
  'PriorityClass',
  'Deployment',
  'StatefulSet',
  'CronJob',
  'PodDisruptionBudget',
];
const RANKS = new Map(FIRST.map((kind, at) => [kind, at]));
const LAST = 'ValidatingWebhookConfiguration';
const rank = (kind: string): number => RANKS.get(kind) ?? (kind === LAST ? FIRST.length + 1 : FIRST.length);
const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** Orders references: by upstream's order of kinds, then group, kind, namespace and name. */
export const compareRefs = (a: ObjectRef, b: ObjectRef): number =>
  rank(a.kind) - rank(b.kind) ||
  compareText(a.group, b.group) ||
  compareText(a.kind, b.kind) ||
  compareText(a.namespace, b.namespace) ||
  compareText(a.name, b.name);

/** What a graph needs to know of one object. */
export interface GraphNode {
  readonly ref: ObjectRef;
  /** From its annotation. */
  readonly dependsOn: readonly ObjectRef[];
  /** Of a CustomResourceDefinition: the group and kind that it defines. */
  readonly defines?: { readonly group: string; readonly kind: string };
}

/** What each object depends on, by id: its annotation, its Namespace and the definition of its kind, where those are in the set. */
export function dependencies(nodes: readonly GraphNode[]): Map<string, Set<string>> {
  const namespaces = new Map<string, string>();
  const definitions = new Map<string, string>();
  for (const { ref, defines } of nodes) {
    if (ref.kind === 'Namespace' && ref.group === '') namespaces.set(ref.name, refId(ref));
    if (defines) definitions.set(`${defines.group}/${defines.kind}`, refId(ref));
  }
  return new Map(
    nodes.map(({ ref, dependsOn }) => {
      const needs = new Set(dependsOn.map(refId));
      const namespace = ref.namespace === '' ? undefined : namespaces.get(ref.namespace);
      if (namespace !== undefined) needs.add(namespace);
      const definition = definitions.get(`${ref.group}/${ref.kind}`);
      if (definition !== undefined) needs.add(definition);
      needs.delete(refId(ref));
      return [refId(ref), needs];
    }),
  );
}

/** The objects that can never be reached, since they wait for each other or for such: ids of all cycles and of those alone. */
export function cycles(needs: ReadonlyMap<string, ReadonlySet<string>>): Set<string> {
  // Peeled from both ends: what is left has something before and after it in the set.
  const left = new Set(needs.keys());
  for (let changed = true; changed; ) {
    changed = false;
    const needed = new Set<string>();
    for (const id of left) for (const other of needs.get(id) ?? []) needed.add(other);
    for (const id of left) {
      const waits = [...(needs.get(id) ?? [])].some((other) => left.has(other));
      if (waits && needed.has(id)) continue;
      left.delete(id);
      changed = true;
    }
  }
  return left;
}
