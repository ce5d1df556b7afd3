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
 * and RootSyncs that are being deleted and manage objects in it, as long as their policy is Foreground and they have not
 * ended. Undefined when there is nothing to wait for, or no longer. Rejects with ApiError.
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
  const roots = await rootsOf(client, namespace, signal);
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

/** RootSyncs that are being deleted, with objects in the namespace. */
async function rootsOf(client: Client, namespace: string, signal: AbortSignal): Promise<Sync[]> {
  const { items } = await client.list(ROOT_SYNCS, { namespace: CONFIG_SYNC_NAMESPACE, signal });
  const going = items.filter((one) => isDeleting(one) && isOrdered(one));
  if (going.length === 0) return [];
  const inventories = await client.list(RESOURCE_GROUPS, { namespace: CONFIG_SYNC_NAMESPACE, signal });
  const here = new Set(
    inventories.items
      .filter(({ spec }) => spec?.resources?.some((ref) => ref.namespace === namespace))
      .map(({ metadata }) => metadata.labels?.['configsync.gke.io/sync-name']),
  );
  return going.filter(({ metadata }) => here.has(metadata.name));
}
