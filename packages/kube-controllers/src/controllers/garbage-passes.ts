/**
 * What is done about one object: the graph decides, and, before anything is written, what is stored decides again. It is
 * deleted, stripped of references, or loses a finalizer.
 */
import type { DeepReadonly, KubeObject, OwnerReference } from '@coracle/apimachinery/meta/object';
import { isNotFound, orAbsent } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import { type ReconcileContext, type ReconcileResult, requeueAfter } from '@coracle/client/controller/controller';
import { type Discovery, findKind } from '@coracle/client/discovery/discover';
import { removeFinalizer } from '@coracle/client/finalizer/finalizer';
import type { Clock } from '@coracle/runtime/clock/clock';
import { nextTurn } from '@coracle/runtime/clock/next-turn';
import { MAX_AGE_MS } from './discovery-cache.ts';
import { garbageDecision, type OwnerState } from './garbage-decision.ts';
import type { OwnerChanges } from './owner-changes.ts';
import {
  FOREGROUND_FINALIZER,
  type GraphNode,
  isDeletingDependents,
  ORPHAN_FINALIZER,
  type OwnerGraph,
  refersTo,
  toGraphNode,
} from './owner-graph.ts';

type Reference = DeepReadonly<OwnerReference>;

/** Dependents of one owner that are made to forget it at once. */
const ORPHANED_AT_ONCE = 20;
/** How soon a pass comes back while monitors are filling. */
const NOT_READY_MS = 100;
/** How soon an object is looked at again whose owner exists but was never seen by an informer: its end may go unseen too. */
const UNSEEN_OWNER_MS = 10_000;

/** A namespaced kind cannot own what belongs to no namespace: the reference can never be resolved. */
class InvalidOwner extends Error {}
/** The kind is not served: whether the owner exists cannot be known. */
class UnknownKind extends Error {}

interface GarbagePassesOptions {
  readonly client: Client;
  readonly clock: Clock;
  readonly graph: OwnerGraph;
  readonly changes: OwnerChanges;
  /** Whether the graph shows all that can be known. */
  readonly isReady: () => boolean;
  /** The kinds that there are, as far as is known. */
  readonly served: () => Discovery;
  readonly enqueue: (uid: string) => void;
  /** Whether a refused deletion means that something else holds the object. */
  readonly isKept?: ((error: unknown) => boolean) | undefined;
}

export class GarbagePasses {
  readonly #options: GarbagePassesOptions;
  readonly #graph: OwnerGraph;
  /** Objects whose owner's kind was unknown: looked at again as soon as discovery knows more. */
  readonly #puzzling = new Set<string>();

  constructor(options: GarbagePassesOptions) {
    this.#options = options;
    this.#graph = options.graph;
  }

  /** Discovery may know more kinds now. */
  retryPuzzling(): void {
    for (const uid of this.#puzzling) this.#options.enqueue(uid);
    this.#puzzling.clear();
  }

  /** One pass over the object of that uid. */
  async pass(uid: string, context: ReconcileContext): Promise<ReconcileResult> {
    if (!this.#options.isReady()) return requeueAfter(NOT_READY_MS);
    const node = this.#graph.get(uid);
    if (!node) return;
    try {
      if (!node.deleting) return await this.#decide(node, context);
      if (node.finalizers.includes(ORPHAN_FINALIZER)) await this.#orphanDependents(node, context);
      else if (isDeletingDependents(node)) await this.#deleteDependents(node, context);
    } catch (error) {
      if (isNotFound(error) || error instanceof InvalidOwner) return;
      if (error instanceof UnknownKind) {
        context.log.debug('owner of unknown kind', { error: error.message });
        this.#puzzling.add(uid);
        return requeueAfter(MAX_AGE_MS);
      }
      throw error;
    }
  }

  /** Deletes or corrects an object whose owners may be gone. */
  async #decide(node: GraphNode, { signal, log: passLog }: ReconcileContext): Promise<ReconcileResult> {
    const first = await this.#decisionOf(node, signal);
    if (first.type === 'keep') {
      return node.owners.every(({ uid }) => this.#graph.get(uid)) ? undefined : requeueAfter(UNSEEN_OWNER_MS);
    }
    // The graph lags behind: what is stored decides.
    const stored = await this.#read(node, signal);
    if (!stored || stored.metadata.deletionTimestamp !== undefined) return;
    const decision = await this.#decisionOf(toGraphNode(node.type, stored), signal);
    const { client, isKept } = this.#options;
    const write = (held: KubeObject, ownerReferences: readonly Reference[]): Promise<KubeObject> =>
      this.#patch(node, held, { ownerReferences }, signal);
    if (decision.type === 'strip') await write(stored, decision.references);
    if (decision.type !== 'delete') return;
    const current = decision.unblocked ? await write(stored, decision.unblocked) : stored;
    const { type, namespace, name, uid } = node;
    const { policy } = decision;
    passLog.info('deleting object without owner', { resource: type.resource, ns: namespace, object: name, policy });
    try {
      const preconditions = { uid, resourceVersion: current.metadata.resourceVersion ?? '' };
      await client.delete(type, { namespace, name }, { propagationPolicy: policy, preconditions, signal });
    } catch (error) {
      if (!isKept?.(error)) throw error;
      // Something of theirs for good: an owner that waits for it would wait until they are unprotected.
      await write(current, []);
    }
  }

  async #decisionOf(node: GraphNode, signal: AbortSignal) {
    const owners: { reference: Reference; state: OwnerState }[] = [];
    for (const reference of node.owners) {
      // There may be thousands, and one that is asked for in this process keeps the turn.
      if (this.#options.clock.turnIsLong()) await nextTurn();
      owners.push({ reference, state: await this.#ownerState(reference, node, signal) });
    }
    const dependents = this.#graph.ownedBy(node);
    return garbageDecision({
      owners,
      finalizers: node.finalizers,
      hasDependents: dependents.length > 0,
      dependentIsWaiting: dependents.some(isDeletingDependents),
    });
  }

  /** Where the graph does not know an owner, the server is asked: nothing counts as absent on a cache's word. */
  async #ownerState(ref: Reference, dependent: GraphNode, signal: AbortSignal): Promise<OwnerState> {
    const { changes } = this.#options;
    if (changes.isAbsent(ref, dependent.namespace) || changes.isAbsent(ref, '')) return 'dangling';
    const type = findKind(this.#options.served(), ref.apiVersion, ref.kind);
    if (!type) throw new UnknownKind(`no resource for ${ref.kind} of ${ref.apiVersion}`);
    if (type.namespaced && dependent.namespace === '') {
      throw new InvalidOwner(
        `${dependent.type.kind} "${dependent.name}" is cluster-scoped, its owner ${ref.kind} is not`,
      );
    }
    const known = this.#graph.get(ref.uid);
    if (known && refersTo(ref, known, dependent.namespace)) return isDeletingDependents(known) ? 'waiting' : 'solid';
    const namespace = type.namespaced ? dependent.namespace : '';
    const key = { namespace, name: ref.name };
    const owner = await orAbsent(this.#options.client.get(type, key, { metadataOnly: true, signal }));
    if (owner?.metadata.uid === ref.uid) return isDeletingDependents(toGraphNode(type, owner)) ? 'waiting' : 'solid';
    changes.rememberAbsent(ref, namespace);
    return 'dangling';
  }

  /** Foreground: all dependents are on their way; the owner goes when none that blocks it is left. */
  async #deleteDependents(owner: GraphNode, { signal }: ReconcileContext): Promise<void> {
    const dependents = this.#graph.ownedBy(owner);
    for (const dependent of dependents) if (!isDeletingDependents(dependent)) this.#options.enqueue(dependent.uid);
    // In another namespace nothing is its dependent, whatever it says: it holds nobody there.
    const isBlocking = ({ owners, namespace }: GraphNode): boolean =>
      owners.some((ref) => ref.blockOwnerDeletion === true && refersTo(ref, owner, namespace));
    if (!dependents.some(isBlocking)) await this.#dropFinalizer(owner, FOREGROUND_FINALIZER, signal);
  }

  /** Orphan: dependents forget the owner, then the owner goes. Some at a time: an owner of thousands must not flood the server. */
  async #orphanDependents(owner: GraphNode, { signal }: ReconcileContext): Promise<void> {
    // By uid alone, as upstream: what names the owner from elsewhere loses a reference that never counted.
    const left = this.#graph.dependentsOf(owner.uid).values();
    const worker = async (): Promise<void> => {
      for (const dependent of left) {
        if (this.#options.clock.turnIsLong()) await nextTurn();
        await this.#orphan(dependent, owner, signal);
      }
    };
    await Promise.all(Array.from({ length: ORPHANED_AT_ONCE }, worker));
    await this.#dropFinalizer(owner, ORPHAN_FINALIZER, signal);
  }

  async #orphan(dependent: GraphNode, owner: GraphNode, signal: AbortSignal): Promise<void> {
    const stored = await this.#read(dependent, signal);
    const held = stored?.metadata.ownerReferences ?? [];
    const references = held.filter((ref) => ref.uid !== owner.uid);
    if (!stored || references.length === held.length) return;
    await orAbsent(this.#patch(dependent, stored, { ownerReferences: references }, signal));
  }

  /** The stored metadata of this very object; undefined when it is gone or another has its name. */
  async #read({ type, namespace, name, uid }: GraphNode, signal: AbortSignal): Promise<KubeObject | undefined> {
    const stored = await orAbsent(this.#options.client.get(type, { namespace, name }, { metadataOnly: true, signal }));
    return stored?.metadata.uid === uid ? stored : undefined;
  }

  /** Replaces whole lists of metadata (empty ones go), provided nobody wrote since `stored` was read. */
  #patch(
    { type, namespace, name }: GraphNode,
    stored: KubeObject,
    change: { readonly ownerReferences?: readonly Reference[]; readonly finalizers?: readonly string[] },
    signal: AbortSignal,
  ): Promise<KubeObject> {
    const { uid, resourceVersion } = stored.metadata;
    const lists = Object.entries(change).map(([field, list]) => [field, list.length > 0 ? list : null]);
    const body = { metadata: { uid, resourceVersion, ...Object.fromEntries(lists) } };
    const options = { metadataOnly: true, signal };
    return this.#options.client.patch(type, { namespace, name }, { type: 'merge', body }, options);
  }

  async #dropFinalizer(node: GraphNode, finalizer: string, signal: AbortSignal): Promise<void> {
    const stored = await this.#read(node, signal);
    if (!stored) return;
    const changed = removeFinalizer(stored, finalizer);
    if (changed !== stored) await this.#patch(node, stored, { finalizers: changed.metadata.finalizers ?? [] }, signal);
  }
}
