/**
 * Deletes what nobody owns any more, for every kind there is.
 *
 * Flow: monitors fill the owner graph > objects whose owners changed are enqueued by uid > a pass decides by the graph,
 * and, before it acts, again by what is stored > delete, strip references, or remove a finalizer.
 * Guarantees: nothing is deleted before every owner was confirmed absent by the server; deletions carry the uid and
 * resourceVersion that the decision was made on. What a protected machine holds stays, without its owners. Caveat: a dependent created while its owner is being deleted in the foreground may
 * not be waited for; it is collected after.
 */

import { apiVersionOf, type ResourceType } from '@coracle/apimachinery/meta/gvk';
import type { DeepReadonly, KubeObject, ObjectKey, OwnerReference } from '@coracle/apimachinery/meta/object';
import type { PolicyRule } from '@coracle/apimachinery/types/access-types';
import { isNotFound } from '@coracle/client/api-failure';
import {
  createController,
  DONE,
  type ReconcileContext,
  type ReconcileResult,
  requeueAfter,
} from '@coracle/client/controller/controller';
import type { ControllerEnvironment, Runnable } from '@coracle/client/controller/environment';
import { type Discovery, findKind } from '@coracle/client/discovery/discover';
import { createEventRecorder } from '@coracle/client/events/recorder';
import { removeFinalizer } from '@coracle/client/finalizer/finalizer';
import { nextTurn } from '@coracle/runtime/clock/next-turn';
import { createDiscoveryCache, MAX_AGE_MS } from './discovery-cache.ts';
import { createGarbageMonitors } from './garbage-monitors.ts';
import { garbageVerdict, type OwnerState } from './garbage-verdict.ts';
import {
  FOREGROUND_FINALIZER,
  type GraphNode,
  isDeletingDependents,
  ORPHAN_FINALIZER,
  OwnerGraph,
  refersTo,
  toGraphNode,
} from './owner-graph.ts';

export const garbageCollectorRules: PolicyRule[] = [
  { apiGroups: ['*'], resources: ['*'], verbs: ['get', 'list', 'watch', 'patch', 'delete'] },
  { apiGroups: [''], resources: ['events'], verbs: ['create'] },
  { nonResourceURLs: ['/api', '/api/*', '/apis', '/apis/*'], verbs: ['get'] },
];

type Reference = DeepReadonly<OwnerReference>;

const NAME = 'garbage-collector-controller';
const CONCURRENCY = 20;
/** Dependents of one owner that are made to forget it at once. */
const ORPHANED_AT_ONCE = 20;
/** How soon a pass comes back while monitors are filling. */
const NOT_READY_MS = 100;
/** Changes of CRDs are gathered this long before discovery is read again. */
const REFRESH_DELAY_MS = 250;
/** How soon an object is looked at again whose owner exists but was never seen by an informer: its end may go unseen too. */
const UNSEEN_OWNER_MS = 10_000;
/** Owners known to be gone, so that their dependents need not ask again; the oldest are forgotten. */
const MAX_ABSENT = 5_000;

/** A namespaced kind cannot own what belongs to no namespace: the reference can never be resolved. */
class InvalidOwner extends Error {}
/** The kind is not served: whether the owner exists cannot be known. */
class UnknownKind extends Error {}

export interface GarbageCollectorOptions extends ControllerEnvironment {
  /** Whether a refused deletion means that something else holds the object, as an owner would: then it stays, without a retry. */
  readonly isKept?: (error: unknown) => boolean;
}

/** Makes the garbage collector. */
export function createGarbageCollectorController(environment: GarbageCollectorOptions): Runnable {
  const { client, informers, clock, log } = environment;
  const graph = new OwnerGraph();
  const absent = new Set<string>();
  /** Objects whose owner's kind was unknown: looked at again as soon as discovery knows more. */
  const puzzling = new Set<string>();
  const discovery = createDiscoveryCache(client, informers, clock);
  const recorder = createEventRecorder(client, { component: NAME, clock, log });
  let served: Discovery = { resources: [], failures: [] };

  const controller = createController({
    name: NAME,
    client,
    clock,
    log,
    concurrency: CONCURRENCY,
    sources: [],
    reconcile: (key, context) => pass(key.name, context),
  });
  const enqueue = (uid: string): void => controller.enqueue({ namespace: '', name: uid });

  const monitors = createGarbageMonitors({
    client,
    clock,
    log,
    onChange: (type, change) => {
      if (change.type === 'deleted') forget(change.object.metadata.uid ?? '');
      else observe(toGraphNode(type, change.object));
    },
    onGone: (type) => {
      // Not served is not deleted: dependents ask again, and wait until the kind is back.
      for (const { uid } of graph.ofResource(type.group, type.resource)) drop(uid);
    },
  });

  function observe(node: GraphNode): void {
    const previous = graph.put(node);
    if (node.deleting && (node.finalizers.includes(ORPHAN_FINALIZER) || isDeletingDependents(node))) enqueue(node.uid);
    // Owners it no longer names, or no longer blocks, may be waiting for just that.
    for (const { uid } of previous?.owners ?? []) enqueueIfWaiting(uid);
    if (node.owners.some((ref) => needsLook(ref, node))) enqueue(node.uid);
    reportFarOwners(node, previous);
  }
  /** Tells once of each reference into another namespace, whichever of the two objects was seen first. */
  function reportFarOwners(node: GraphNode, previous: GraphNode | undefined): void {
    const before = new Set(previous?.owners.map(({ uid }) => uid));
    const far = node.owners.find(({ uid }) => !before.has(uid) && isFar(graph.get(uid), node));
    if (far) warnNamespace(far, node);
    if (previous === undefined && node.namespace !== '') {
      for (const dependent of graph.dependentsOf(node.uid)) {
        if (!isFar(node, dependent)) continue;
        warnNamespace(dependent.owners.find(({ uid }) => uid === node.uid)!, dependent);
      }
    }
  }
  function needsLook(ref: Reference, node: GraphNode): boolean {
    const owner = graph.get(ref.uid);
    return !owner || !refersTo(ref, owner, node.namespace) || isDeletingDependents(owner);
  }
  function enqueueIfWaiting(uid: string): void {
    const owner = graph.get(uid);
    if (owner && isDeletingDependents(owner)) enqueue(uid);
  }

  /** The server said that the object is deleted. */
  function forget(uid: string): void {
    const node = graph.get(uid);
    if (!node) return;
    if (graph.dependentsOf(uid).length > 0) remember(absentKey(identityOf(node), node.namespace));
    drop(uid);
  }
  function drop(uid: string): void {
    const node = graph.remove(uid);
    if (!node) return;
    for (const dependent of graph.dependentsOf(uid)) enqueue(dependent.uid);
    for (const owner of node.owners) enqueueIfWaiting(owner.uid);
  }
  function remember(key: string): void {
    absent.add(key);
    if (absent.size > MAX_ABSENT) absent.delete(absent.values().next().value!);
  }

  async function pass(uid: string, context: ReconcileContext): Promise<ReconcileResult> {
    if (!monitors.ready()) return requeueAfter(NOT_READY_MS);
    const node = graph.get(uid);
    if (!node) return DONE;
    try {
      if (!node.deleting) return await decide(node, context);
      if (node.finalizers.includes(ORPHAN_FINALIZER)) await orphanDependents(node, context);
      else if (isDeletingDependents(node)) await deleteDependents(node, context);
      return DONE;
    } catch (error) {
      if (isNotFound(error)) return DONE;
      if (error instanceof InvalidOwner) return DONE;
      if (error instanceof UnknownKind) {
        context.log.debug('owner of unknown kind', { error: error.message });
        puzzling.add(uid);
        return requeueAfter(MAX_AGE_MS);
      }
      throw error;
    }
  }

  /** Deletes or corrects an object whose owners may be gone. */
  async function decide(node: GraphNode, { signal, log: passLog }: ReconcileContext): Promise<ReconcileResult> {
    const first = await verdictOf(node, signal);
    if (first.type === 'keep') {
      return node.owners.every(({ uid }) => graph.get(uid)) ? DONE : requeueAfter(UNSEEN_OWNER_MS);
    }
    // The graph lags behind: what is stored decides.
    const stored = await read(node, signal);
    if (!stored || stored.metadata.deletionTimestamp !== undefined) return DONE;
    const latest = toGraphNode(node.type, stored);
    const verdict = await verdictOf(latest, signal);
    switch (verdict.type) {
      case 'keep':
        return DONE;
      case 'strip':
        await patchMetadata(node, stored, { ownerReferences: verdict.references }, signal);
        return DONE;
      case 'delete': {
        let current = stored;
        if (verdict.unblocked) {
          current = await patchMetadata(node, stored, { ownerReferences: verdict.unblocked }, signal);
        }
        const { resourceVersion = '' } = current.metadata;
        passLog.info('deleting object without owner', {
          resource: node.type.resource,
          ns: node.namespace,
          object: node.name,
          policy: verdict.policy,
        });
        try {
          await client.delete(node.type, keyOfNode(node), {
            propagationPolicy: verdict.policy,
            preconditions: { uid: node.uid, resourceVersion },
            signal,
          });
        } catch (error) {
          if (!(environment.isKept?.(error) ?? false)) throw error;
          // Something of theirs for good: an owner that waits for it would wait until they are unprotected.
          await patchMetadata(node, current, { ownerReferences: [] }, signal);
        }
        return DONE;
      }
    }
  }

  async function verdictOf(node: GraphNode, signal: AbortSignal) {
    const owners: { reference: Reference; state: OwnerState }[] = [];
    for (const reference of node.owners) {
      // There may be thousands, and one that is asked for in this process keeps the turn.
      if (clock.turnIsLong()) await nextTurn();
      owners.push({ reference, state: await ownerState(reference, node, signal) });
    }
    const dependents = graph.ownedBy(node);
    return garbageVerdict({
      owners,
      finalizers: node.finalizers,
      hasDependents: dependents.length > 0,
      dependentIsWaiting: dependents.some(isDeletingDependents),
    });
  }

  /** Where the graph does not know an owner, the server is asked: nothing counts as absent on a cache's word. */
  async function ownerState(ref: Reference, dependent: GraphNode, signal: AbortSignal): Promise<OwnerState> {
    if (absent.has(absentKey(ref, dependent.namespace)) || absent.has(absentKey(ref, ''))) return 'dangling';
    const type = findKind(served, ref.apiVersion, ref.kind);
    if (!type) throw new UnknownKind(`no resource for ${ref.kind} of ${ref.apiVersion}`);
    if (type.namespaced && dependent.namespace === '') {
      throw new InvalidOwner(
        `${dependent.type.kind} "${dependent.name}" is cluster-scoped, its owner ${ref.kind} is not`,
      );
    }
    const known = graph.get(ref.uid);
    if (known && refersTo(ref, known, dependent.namespace)) return isDeletingDependents(known) ? 'waiting' : 'solid';
    const namespace = type.namespaced ? dependent.namespace : '';
    try {
      const owner = await client.get(type, { namespace, name: ref.name }, { metadataOnly: true, signal });
      if (owner.metadata.uid === ref.uid) return isDeletingDependents(toGraphNode(type, owner)) ? 'waiting' : 'solid';
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
    remember(absentKey(ref, namespace));
    return 'dangling';
  }

  function warnNamespace(ref: Reference, dependent: GraphNode): void {
    const { type, namespace, name, uid } = dependent;
    const object = {
      apiVersion: apiVersionOf(type),
      kind: type.kind,
      metadata: { name, uid, ...(namespace !== '' && { namespace }) },
    };
    const owner = `[${ref.apiVersion}/${ref.kind}, namespace: ${namespace}, name: ${ref.name}, uid: ${ref.uid}]`;
    const message = `ownerRef ${owner} does not exist in namespace ${JSON.stringify(namespace)}`;
    recorder.event(object, 'Warning', 'OwnerRefInvalidNamespace', message);
  }

  /** Foreground: all dependents are on their way; the owner goes when none that blocks it is left. */
  async function deleteDependents(owner: GraphNode, { signal }: ReconcileContext): Promise<void> {
    const dependents = graph.ownedBy(owner);
    for (const dependent of dependents) if (!isDeletingDependents(dependent)) enqueue(dependent.uid);
    // In another namespace nothing is its dependent, whatever it says: it holds nobody there.
    const isBlocking = ({ owners, namespace }: GraphNode): boolean =>
      owners.some((ref) => ref.blockOwnerDeletion === true && refersTo(ref, owner, namespace));
    if (!dependents.some(isBlocking)) await dropFinalizer(owner, FOREGROUND_FINALIZER, signal);
  }

  /** Orphan: dependents forget the owner, then the owner goes. Some at a time: an owner of thousands must not flood the server. */
  async function orphanDependents(owner: GraphNode, { signal }: ReconcileContext): Promise<void> {
    // By uid alone, as upstream: what names the owner from elsewhere loses a reference that never counted.
    const left = graph.dependentsOf(owner.uid).values();
    const worker = async (): Promise<void> => {
      for (const dependent of left) {
        if (clock.turnIsLong()) await nextTurn();
        await orphan(dependent, owner, signal);
      }
    };
    await Promise.all(Array.from({ length: ORPHANED_AT_ONCE }, worker));
    await dropFinalizer(owner, ORPHAN_FINALIZER, signal);
  }
  async function orphan(dependent: GraphNode, owner: GraphNode, signal: AbortSignal): Promise<void> {
    const stored = await read(dependent, signal);
    const held = stored?.metadata.ownerReferences ?? [];
    const references = held.filter((ref) => ref.uid !== owner.uid);
    if (!stored || references.length === held.length) return;
    try {
      await patchMetadata(dependent, stored, { ownerReferences: references }, signal);
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }

  async function dropFinalizer(node: GraphNode, finalizer: string, signal: AbortSignal): Promise<void> {
    const stored = await read(node, signal);
    if (!stored) return;
    const changed = removeFinalizer(stored, finalizer);
    if (changed !== stored)
      await patchMetadata(node, stored, { finalizers: changed.metadata.finalizers ?? [] }, signal);
  }

  /** The stored metadata of this very object; undefined when it is gone or another has its name. */
  async function read(node: GraphNode, signal: AbortSignal): Promise<KubeObject | undefined> {
    try {
      const stored = await client.get(node.type, keyOfNode(node), { metadataOnly: true, signal });
      return stored.metadata.uid === node.uid ? stored : undefined;
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }

  /** Replaces whole lists of metadata (empty ones go), provided nobody wrote since `stored` was read. */
  function patchMetadata(
    node: GraphNode,
    stored: KubeObject,
    change: { readonly ownerReferences?: readonly Reference[]; readonly finalizers?: readonly string[] },
    signal: AbortSignal,
  ): Promise<KubeObject> {
    const { uid, resourceVersion } = stored.metadata;
    const lists = Object.entries(change).map(([field, list]) => [field, list.length > 0 ? list : null]);
    return client.patch(
      node.type as ResourceType<KubeObject>,
      keyOfNode(node),
      { type: 'merge', body: { metadata: { uid, resourceVersion, ...Object.fromEntries(lists) } } },
      { metadataOnly: true, signal },
    );
  }

  return {
    name: NAME,
    async start(signal) {
      let cancel: (() => void) | undefined;
      let refreshing = false;
      const refresh = async (): Promise<void> => {
        if (refreshing) return;
        refreshing = true;
        let next = MAX_AGE_MS;
        try {
          served = await discovery.read(signal);
          if (!signal.aborted) monitors.sync(served, signal);
          for (const uid of puzzling) enqueue(uid);
          puzzling.clear();
        } catch (error) {
          next = 1_000;
          if (!signal.aborted) log.warn('discovery failed', { controller: NAME, error: String(error) });
        }
        refreshing = false;
        plan(next);
      };
      const plan = (ms: number): void => {
        cancel?.();
        if (!signal.aborted) cancel = clock.schedule(ms, () => void refresh());
      };
      discovery.onStale(() => plan(REFRESH_DELAY_MS));
      await refresh();
      await controller.start(signal);
      cancel?.();
      await monitors.stopped();
    },
  };
}

const keyOfNode = ({ namespace, name }: GraphNode): ObjectKey => ({ namespace, name });

type Identity = Pick<Reference, 'apiVersion' | 'kind' | 'name' | 'uid'>;
const identityOf = ({ type, name, uid }: GraphNode): Identity => ({
  apiVersion: apiVersionOf(type),
  kind: type.kind,
  name,
  uid,
});
const absentKey = ({ apiVersion, kind, name, uid }: Identity, namespace: string): string =>
  JSON.stringify([uid, apiVersion, kind, namespace, name]);
/** True when the owner lives in a namespace that is not the dependent's: the reference cannot be meant. */
const isFar = (owner: GraphNode | undefined, dependent: GraphNode): boolean =>
  owner !== undefined && owner.namespace !== '' && owner.namespace !== dependent.namespace;
