/**
 * Syncs that delete what they manage in order, dependents first: a terminating namespace leaves them the time for that. It
 * would otherwise take objects, and the rights to delete them, in no order at all.
 */

import { isDeleting } from '@coracle/apimachinery/meta/object-state';
import { isNotFound } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import type { Discovery } from '@coracle/client/discovery/discover';
import {
  CONFIG_SYNC_GROUP,
  CONFIG_SYNC_NAMESPACE,
  FOREGROUND,
  type ObjectRef,
  PROPAGATION_POLICY,
  RECONCILER_FINALIZER,
  REPO_SYNCS,
  RESOURCE_GROUPS,
  ROOT_SYNCS,
  type Sync,
} from '../kinds/kinds.ts';

export interface OrderedDeletionOptions {
  /** What the server serves. */
  readonly discovery: Discovery;
  /** Milliseconds since the namespace was deleted. */
  readonly deletedForMs: number;
  readonly signal: AbortSignal;
}

/** The syncs, as the content of a namespace that has to go first. */
export interface WaitedSyncs {
  /** `reposyncs.configsync.gke.io` -> how many are left. */
  readonly remaining: ReadonlyMap<string, number>;
  /** Finalizer -> how many carry it. */
  readonly finalizers: ReadonlyMap<string, number>;
  readonly failures: readonly string[];
  readonly waitsForPods: boolean;
}

/** A sync has 30 seconds once its namespace is terminating: this is somewhat more, and then the namespace goes on. */
const ORDERED_MS = 35_000;

/**
 * Deletes the RepoSyncs of a terminating namespace before anything else in it, and says which syncs it waits for: those,
 * and RootSyncs that are being deleted, as long as their policy is Foreground, they have not ended, and any of their objects
 * is left in it: one that declares the namespace waits in turn for its end. Undefined when there is nothing to wait for, or
 * no longer. Rejects with ApiError.
 */
export async function syncsToWaitFor(
  client: Client,
  namespace: string,
  { discovery, deletedForMs, signal }: OrderedDeletionOptions,
): Promise<WaitedSyncs | undefined> {
  if (deletedForMs >= ORDERED_MS || namespace === CONFIG_SYNC_NAMESPACE) return undefined;
  const serves = (resource: string): boolean =>
    discovery.resources.some(({ type }) => type.group === CONFIG_SYNC_GROUP && type.resource === resource);
  if (!serves('reposyncs') || !serves('rootsyncs')) return undefined;
  const own = (await client.list(REPO_SYNCS, { namespace, signal })).items.filter(isOrdered);
  for (const { metadata } of own) {
    if (metadata.deletionTimestamp !== undefined) continue;
    try {
      const preconditions = { uid: metadata.uid ?? '' };
      await client.delete(REPO_SYNCS, { namespace, name: metadata.name ?? '' }, { preconditions, signal });
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }
  const roots = await rootsOf(client, namespace, { discovery, deletedForMs, signal });
  const waited = own.length + roots.length;
  if (waited === 0) return undefined;
  return {
    remaining: new Map(
      [
        [`reposyncs.${CONFIG_SYNC_GROUP}`, own.length] as const,
        [`rootsyncs.${CONFIG_SYNC_GROUP}`, roots.length] as const,
      ].filter(([, count]) => count > 0),
    ),
    finalizers: new Map([[RECONCILER_FINALIZER, waited]]),
    failures: [],
    waitsForPods: false,
  };
}

const isOrdered = ({ metadata }: Sync): boolean =>
  metadata.annotations?.[PROPAGATION_POLICY] === FOREGROUND &&
  (metadata.finalizers ?? []).includes(RECONCILER_FINALIZER);

/** RootSyncs that are being deleted, and objects of which are left in the namespace: what they name may be gone by now. */
async function rootsOf(client: Client, namespace: string, options: OrderedDeletionOptions): Promise<Sync[]> {
  const { signal } = options;
  const { items } = await client.list(ROOT_SYNCS, { namespace: CONFIG_SYNC_NAMESPACE, signal });
  const going = items.filter((one) => isDeleting(one) && isOrdered(one));
  if (going.length === 0) return [];
  const inventories = await client.list(RESOURCE_GROUPS, { namespace: CONFIG_SYNC_NAMESPACE, signal });
  const waited: Sync[] = [];
  for (const one of going) {
    const refs = inventories.items
      .filter(({ metadata }) => metadata.labels?.['configsync.gke.io/sync-name'] === one.metadata.name)
      .flatMap(({ spec }) => spec?.resources?.filter((ref) => ref.namespace === namespace) ?? []);
    if (await isAnyLeft(client, refs, options)) waited.push(one);
  }
  return waited;
}

/** Whether any of these objects of one namespace is there. What may be served and cannot be listed counts as there. */
async function isAnyLeft(
  client: Client,
  refs: readonly ObjectRef[],
  { discovery, signal }: OrderedDeletionOptions,
): Promise<boolean> {
  for (const [kind, named] of Map.groupBy(refs, (ref) => `${ref.kind}.${ref.group}`)) {
    const { group, namespace } = named[0]!;
    const found = discovery.resources.find(({ type, preferred }) => preferred && `${type.kind}.${type.group}` === kind);
    const isServed = found ?? discovery.failures.some(({ groupVersion }) => groupVersion.startsWith(`${group}/`));
    if (!isServed) continue;
    if (!found?.verbs.includes('list')) return true;
    const { items } = await client.list(found.type, { namespace, metadataOnly: true, signal });
    const names = new Set(named.map(({ name }) => name));
    if (items.some(({ metadata }) => names.has(metadata.name ?? ''))) return true;
  }
  return false;
}
