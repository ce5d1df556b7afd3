/** The sync that a command's word names, as it is in the cluster. */

import { orAbsent } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import { CONFIG_SYNC_NAMESPACE, REPO_SYNCS, ROOT_SYNCS, type Sync } from '@coracle/gitops/kinds/kinds';
import type { SyncIdentity } from '@coracle/gitops/status/sync-identity';
import { UsageError } from '../command.ts';

/**
 * `NAME`, `rootsync/NAME` or `reposync/NAME`; without a kind a RepoSync where a namespace is given, else a RootSync; without
 * a word the one of upstream's usual name. Throws UsageError.
 */
export function syncTarget(
  word: string | undefined,
  { given, ofContext }: { readonly given: string | undefined; readonly ofContext: string },
): SyncIdentity {
  const [first = '', second] = word?.split('/') ?? [];
  const kind = second === undefined ? (given === undefined ? 'rootsync' : 'reposync') : first.toLowerCase();
  const isRoot = /^rootsyncs?(\.configsync\.gke\.io)?$/.test(kind);
  if (!isRoot && !/^reposyncs?(\.configsync\.gke\.io)?$/.test(kind))
    throw new UsageError(`a sync is named NAME, rootsync/NAME or reposync/NAME, not "${word}"`);
  const name = second ?? (first || (isRoot ? 'root-sync' : 'repo-sync'));
  if (name === '' || word?.split('/').length === 3) throw new UsageError(`"${word}" names no sync`);
  if (isRoot && given !== undefined && given !== CONFIG_SYNC_NAMESPACE)
    throw new UsageError(`a RootSync is in namespace ${CONFIG_SYNC_NAMESPACE}: leave --namespace out`);
  return isRoot
    ? { kind: 'RootSync', namespace: CONFIG_SYNC_NAMESPACE, name }
    : { kind: 'RepoSync', namespace: given ?? ofContext, name };
}

/** Undefined when there is none. Rejects with ApiError. */
export async function findSync(client: Client, sync: SyncIdentity, signal: AbortSignal): Promise<Sync | undefined> {
  const type = sync.kind === 'RootSync' ? ROOT_SYNCS : REPO_SYNCS;
  return orAbsent(client.get(type, { namespace: sync.namespace, name: sync.name }, { signal }));
}
