/** Keeps the owner graph in step with what is seen of objects, and says which of them a change lets the collector look at. */
import { apiVersionOf } from '@coracle/apimachinery/meta/gvk';
import type { DeepReadonly, OwnerReference } from '@coracle/apimachinery/meta/object';
import type { EventRecorder } from '@coracle/client/events/recorder';
import { type GraphNode, isDeletingDependents, ORPHAN_FINALIZER, type OwnerGraph, refersTo } from './owner-graph.ts';

/** Owners known to be gone, so that their dependents need not ask again; the oldest are forgotten. */
const MAX_ABSENT = 5_000;

export class OwnerChanges {
  readonly #graph: OwnerGraph;
  readonly #recorder: Pick<EventRecorder, 'event'>;
  readonly #enqueue: (uid: string) => void;
  readonly #absent = new Set<string>();

  constructor(
    graph: OwnerGraph,
    options: { readonly recorder: Pick<EventRecorder, 'event'>; readonly enqueue: (uid: string) => void },
  ) {
    this.#graph = graph;
    this.#recorder = options.recorder;
    this.#enqueue = options.enqueue;
  }

  /** An object was seen, as it is now. */
  observe(node: GraphNode): void {
    const previous = this.#graph.put(node);
    if (node.deleting && (node.finalizers.includes(ORPHAN_FINALIZER) || isDeletingDependents(node)))
      this.#enqueue(node.uid);
    // Owners it no longer names, or no longer blocks, may be waiting for just that.
    for (const { uid } of previous?.owners ?? []) this.#enqueueIfWaiting(uid);
    if (node.owners.some((ref) => this.#needsLook(ref, node))) this.#enqueue(node.uid);
    this.#reportFarOwners(node, previous);
  }

  /** Tells once of each reference into another namespace, whichever of the two objects was seen first. */
  #reportFarOwners(node: GraphNode, previous: GraphNode | undefined): void {
    const before = new Set(previous?.owners.map(({ uid }) => uid));
    const far = node.owners.find(({ uid }) => !before.has(uid) && isFar(this.#graph.get(uid), node));
    if (far) this.#warnNamespace(far, node);
    if (previous === undefined && node.namespace !== '') {
      for (const dependent of this.#graph.dependentsOf(node.uid)) {
        if (!isFar(node, dependent)) continue;
        this.#warnNamespace(dependent.owners.find(({ uid }) => uid === node.uid)!, dependent);
      }
    }
  }

  #needsLook(ref: DeepReadonly<OwnerReference>, node: GraphNode): boolean {
    const owner = this.#graph.get(ref.uid);
    return !owner || !refersTo(ref, owner, node.namespace) || isDeletingDependents(owner);
  }

  #enqueueIfWaiting(uid: string): void {
    const owner = this.#graph.get(uid);
    if (owner && isDeletingDependents(owner)) this.#enqueue(uid);
  }

  /** The server said that the object is deleted. */
  forget(uid: string): void {
    const node = this.#graph.get(uid);
    if (!node) return;
    const { type, name, namespace } = node;
    const identity = { apiVersion: apiVersionOf(type), kind: type.kind, name, uid };
    if (this.#graph.dependentsOf(uid).length > 0) this.rememberAbsent(identity, namespace);
    this.drop(uid);
  }

  /** It is not known any more whether the object is there. */
  drop(uid: string): void {
    const node = this.#graph.remove(uid);
    if (!node) return;
    for (const dependent of this.#graph.dependentsOf(uid)) this.#enqueue(dependent.uid);
    for (const owner of node.owners) this.#enqueueIfWaiting(owner.uid);
  }

  /** The server said that there is no such owner in that namespace. */
  rememberAbsent(owner: OwnerIdentity, namespace: string): void {
    this.#absent.add(absentKey(owner, namespace));
    if (this.#absent.size > MAX_ABSENT) this.#absent.delete(this.#absent.values().next().value!);
  }

  isAbsent(owner: OwnerIdentity, namespace: string): boolean {
    return this.#absent.has(absentKey(owner, namespace));
  }

  #warnNamespace(ref: DeepReadonly<OwnerReference>, dependent: GraphNode): void {
    const { type, namespace, name, uid } = dependent;
    const object = {
      apiVersion: apiVersionOf(type),
      kind: type.kind,
      metadata: { name, uid, ...(namespace !== '' && { namespace }) },
    };
    const owner = `[${ref.apiVersion}/${ref.kind}, namespace: ${namespace}, name: ${ref.name}, uid: ${ref.uid}]`;
    const message = `ownerRef ${owner} does not exist in namespace ${JSON.stringify(namespace)}`;
    this.#recorder.event(object, 'Warning', 'OwnerRefInvalidNamespace', message);
  }
}

type OwnerIdentity = Pick<DeepReadonly<OwnerReference>, 'apiVersion' | 'kind' | 'name' | 'uid'>;
const absentKey = ({ apiVersion, kind, name, uid }: OwnerIdentity, namespace: string): string =>
  JSON.stringify([uid, apiVersion, kind, namespace, name]);
/** True when the owner lives in a namespace that is not the dependent's: the reference cannot be meant. */
const isFar = (owner: GraphNode | undefined, dependent: GraphNode): boolean =>
  owner !== undefined && owner.namespace !== '' && owner.namespace !== dependent.namespace;
