/** The syncs of one cluster as `nomos status` shows them, read with the rights of the caller. */

import type { ResourceType } from '@coracle/apimachinery/meta/gvk';
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { orAbsent } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import {
  CONFIG_SYNC_GROUP,
  CONFIG_SYNC_NAMESPACE,
  REPO_SYNCS,
  RESOURCE_GROUPS,
  type ResourceGroup,
  ROOT_SYNCS,
  type Sync,
} from '@coracle/gitops/kinds/kinds';
import { type Attempt, attemptsOf } from '@coracle/gitops/status/sync-history';
import { compareStates, type SyncState, syncState } from './sync-state.ts';

export interface StateFilter {
  /** Of RepoSyncs; that of Config Sync itself stands for its RootSyncs. */
  readonly namespace?: string | undefined;
  readonly name?: string | undefined;
  /** Whether the objects of each sync are asked for. */
  readonly resources: boolean;
}

export type ClusterState =
  | { readonly type: 'syncs'; readonly syncs: readonly (SyncState & { readonly attempts: readonly Attempt[] })[] }
  | { readonly type: 'nothing'; readonly word: 'NOT INSTALLED' | 'UNKNOWN' | 'N/A'; readonly error: string };

/** Reads it. Rejects with ApiError. */
export async function clusterState(client: Client, filter: StateFilter, signal: AbortSignal): Promise<ClusterState> {
  const groups = (await client.raw('GET', '/apis', { signal })) as { groups?: { name: string }[] };
  if (!groups.groups?.some(({ name }) => name === CONFIG_SYNC_GROUP))
    return { type: 'nothing', word: 'NOT INSTALLED', error: 'the kinds of Config Sync are not served' };
  const syncs = (
    await Promise.all([ROOT_SYNCS, REPO_SYNCS].map((type) => listed(client, type, filter, signal)))
  ).flat();
  if (syncs.length === 0) return { type: 'nothing', word: 'UNKNOWN', error: 'no RootSync or RepoSync resources found' };
  const states = await Promise.all(
    syncs.map(async (sync) => {
      const statuses = filter.resources ? await statusesOf(client, sync, signal) : undefined;
      return { ...syncState(sync, statuses), attempts: attemptsOf(sync) };
    }),
  );
  return { type: 'syncs', syncs: states.sort(compareStates) };
}

async function listed(
  client: Client,
  type: ResourceType<Sync>,
  { namespace, name }: StateFilter,
  signal: AbortSignal,
): Promise<Sync[]> {
  if (namespace !== undefined && (namespace === CONFIG_SYNC_NAMESPACE) !== (type === ROOT_SYNCS)) return [];
  const list = await orAbsent(client.list(type, { signal, ...(namespace !== undefined && { namespace }) }));
  return ((list?.items ?? []) as Sync[]).filter(({ metadata }) => name === undefined || metadata.name === name);
}

/** The ResourceGroups of a sync: the one of its name, and those that this one names. */
export async function inventoriesOf(
  client: Client,
  { metadata: { namespace = '', name = '' } }: DeepReadonly<Sync>,
  signal: AbortSignal,
): Promise<ResourceGroup[]> {
  const get = async (key: { namespace: string; name: string }): Promise<ResourceGroup[]> => {
    const group = await orAbsent(client.get(RESOURCE_GROUPS, key, { signal }));
    return group ? [group] : [];
  };
  const [first] = await get({ namespace, name });
  if (!first) return [];
  const more = (first.spec?.subgroups ?? []).filter((one) => one.namespace === namespace && one.name !== name);
  return [first, ...(await Promise.all(more.map(get))).flat()];
}

const statusesOf = async (client: Client, sync: DeepReadonly<Sync>, signal: AbortSignal) =>
  (await inventoriesOf(client, sync, signal)).flatMap(({ status }) => status?.resourceStatuses ?? []);
