/**
 * Who owns whom, by uid: what the garbage collector's informers have shown so far. An owner nobody has seen is no node,
 * only a uid that dependents name. Bounded by the objects the server has.
 */

import { parseApiVersion, type ResourceType } from '@coracle/apimachinery/meta/gvk';
import type { DeepReadonly, KubeObject, OwnerReference } from '@coracle/apimachinery/meta/object';
import { isDeleting } from '@coracle/apimachinery/meta/object-state';
import { getOrInsert } from '@coracle/runtime/collections/get-or-insert';

export const ORPHAN_FINALIZER = 'orphan';
export const FOREGROUND_FINALIZER = 'foregroundDeletion';

/** One object as the graph knows it. */
export interface GraphNode {
  readonly uid: string;
  readonly type: ResourceType<KubeObject>;
  /** '' when cluster-scoped. */
  readonly namespace: string;
  readonly name: string;
  readonly owners: readonly DeepReadonly<OwnerReference>[];
  readonly deleting: boolean;
  readonly finalizers: readonly string[];
}

/** True while an object waits for its dependents to go first. */
export const isDeletingDependents = (node: GraphNode): boolean =>
  node.deleting && node.finalizers.includes(FOREGROUND_FINALIZER);

/** True when the reference means this object: same uid, kind and group, in the dependent's namespace or cluster-wide. */
export const refersTo = (ref: DeepReadonly<OwnerReference>, owner: GraphNode, dependentNamespace: string): boolean =>
  ref.uid === owner.uid &&
  ref.kind === owner.type.kind &&
  parseApiVersion(ref.apiVersion).group === owner.type.group &&
  ref.name === owner.name &&
  (owner.namespace === '' || owner.namespace === dependentNamespace);

/** A node of an object's metadata. */
export function toGraphNode(type: ResourceType<KubeObject>, object: DeepReadonly<KubeObject>): GraphNode {
  const { uid = '', namespace = '', name = '', ownerReferences: owners = [], finalizers = [] } = object.metadata;
  return { uid, type, namespace, name, owners, deleting: isDeleting(object), finalizers };
}

export class OwnerGraph {
  readonly #nodes = new Map<string, GraphNode>();
  /** Owner uid -> dependents' uids. */
  readonly #dependents = new Map<string, Set<string>>();

  get(uid: string): GraphNode | undefined {
    return this.#nodes.get(uid);
  }

  /** The objects that name this uid as an owner. */
  dependentsOf(uid: string): GraphNode[] {
    const found: GraphNode[] = [];
    for (const dependent of this.#dependents.get(uid) ?? []) found.push(this.#nodes.get(dependent)!);
    return found;
  }

  /** Of those, the ones it can own: an owner with a namespace has none in others. */
  ownedBy({ uid, namespace }: GraphNode): GraphNode[] {
    const named = this.dependentsOf(uid);
    return namespace === '' ? named : named.filter((dependent) => dependent.namespace === namespace);
  }

  /** Puts a node in and returns the one it replaces. */
  put(node: GraphNode): GraphNode | undefined {
    const previous = this.#nodes.get(node.uid);
    if (previous) this.#unlink(previous);
    this.#nodes.set(node.uid, node);
    for (const { uid } of node.owners) getOrInsert(this.#dependents, uid, () => new Set()).add(node.uid);
    return previous;
  }

  /** Takes a node out and returns it. References to it stay: its dependents still name it. */
  remove(uid: string): GraphNode | undefined {
    const node = this.#nodes.get(uid);
    if (!node) return undefined;
    this.#unlink(node);
    this.#nodes.delete(uid);
    return node;
  }

  /** All nodes of one resource. */
  ofResource(group: string, resource: string): GraphNode[] {
    return [...this.#nodes.values()].filter(({ type }) => type.group === group && type.resource === resource);
  }

  #unlink(node: GraphNode): void {
    for (const { uid } of node.owners) {
      const dependents = this.#dependents.get(uid);
      dependents?.delete(node.uid);
      if (dependents?.size === 0) this.#dependents.delete(uid);
    }
  }
}
