/** What the next attempt of a sync would do: at the commit its source has now, or at files that are not committed yet. */

import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { ApiError } from '@coracle/apimachinery/meta/status';
import { NAMESPACES } from '@coracle/apimachinery/types/resource-types';
import type { Client } from '@coracle/client/client';
import type { Clock } from '@coracle/runtime/clock/clock';
import { openInventory } from '../apply/inventory.ts';
import { createKindCatalog } from '../apply/kind-catalog.ts';
import { createTarget } from '../apply/target.ts';
import type { SourceTree } from '../git/source.ts';
import { parseSource } from '../hierarchy/declare-source.ts';
import { type LiveNamespace, liveNamespaceOf } from '../hierarchy/select-namespaces.ts';
import { REPO_SYNCS, ROOT_SYNCS, type Sync } from '../kinds/kinds.ts';
import { render } from '../render/render.ts';
import { SyncFailure, syncError } from '../status/sync-error.ts';
import type { SyncIdentity } from '../status/sync-identity.ts';
import { declaredBy, refuseToEmpty } from './attempt.ts';
import { planOf } from './check-spec.ts';
import { type Forecast, forecast } from './forecast.ts';
import { openSource } from './open-source.ts';

export interface PreviewOptions {
  readonly sync: SyncIdentity;
  /** With its spec. */
  readonly object: DeepReadonly<Sync>;
  /** Files to go by; the source of the spec when absent. */
  readonly tree?: SourceTree;
  /** What cluster selectors go by; the cluster has no name when absent. */
  readonly clusterName?: string;
  /** All files of where `tree` is from, for what renders it; `tree` when absent. */
  readonly readAll?: () => Promise<SourceTree>;
  /** With the rights of who asks. */
  readonly client: Client;
  /** Private, for what is fetched and rendered. */
  readonly directory: string;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

export interface Preview extends Forecast {
  /** Undefined for files that are not committed. */
  readonly commit: string | undefined;
}

/** Stands for the commit in what is asked of the server. */
const NO_COMMIT = '0'.repeat(40);

/**
 * Fetches, reads, and asks the server about each object; nothing is written.
 * @throws SyncFailure for a spec that cannot be meant, a source that cannot be rendered or would empty the cluster;
 *   SourceError when it cannot be had; ApiError when the server does not answer
 */
export async function previewSync(options: PreviewOptions): Promise<Preview> {
  const { sync, object, client, clock, signal } = options;
  const plan = planOf(object, sync);
  const { tree, commit, readAll } = await treeOf(options, plan);
  // Files of this host are the directory that is synced.
  const source = { ...plan.source, ...(options.tree && { dir: '' }) };
  const rendered = await render(tree, { dir: source.dir, readAll, directory: options.directory, signal });
  const parsed = parseSource(rendered.tree, { format: plan.format, dir: source.dir });
  const target = createTarget(client, { clock, timeoutMs: () => plan.apiServerMs });
  const catalog = createKindCatalog(client, clock);
  const { clusterName = '' } = options;
  const liveNamespaces = await namespacesOf(client, signal);
  const shared = { sync, plan: { ...plan, source }, parsed, target, catalog, signal };
  const set = await declaredBy({ ...shared, clusterName, liveNamespaces });
  const previous = (await openInventory({ client, sync, showsStatus: () => true }).read(signal)) ?? [];
  refuseToEmpty(previous, set);
  const there = await otherSyncs(client, signal);
  const found = await forecast({
    set,
    previous,
    // What an object says of its declared fields is left as it is.
    by: { sync, commit: commit ?? NO_COMMIT, context: plan.source.context, clusterName, isGuarded: true },
    target,
    kinds: await catalog.kinds(signal),
    // Who may not look takes another manager for one that is there, which it may well be.
    exists: ({ kind, namespace, name }) => there?.has(`${kind}/${namespace}/${name}`) ?? true,
    signal,
  });
  return { ...found, commit };
}

async function treeOf(
  { sync, tree, readAll, client, directory, clock, signal }: PreviewOptions,
  plan: ReturnType<typeof planOf>,
): Promise<{ tree: SourceTree; commit: string | undefined; readAll: () => Promise<SourceTree> }> {
  if (tree) return { tree, commit: undefined, readAll: readAll ?? (async () => tree) };
  const source = openSource(plan.source.spec, { sync, client, directory, clock });
  const commit = await source.resolve(signal);
  return { tree: await source.read(commit, signal), commit, readAll: () => source.readAll(commit, signal) };
}

/** For selectors of mode dynamic; without the right to list them those alone fail. */
async function namespacesOf(client: Client, signal: AbortSignal): Promise<() => readonly LiveNamespace[]> {
  try {
    const { items } = await client.list(NAMESPACES, { signal });
    const live = items.map(liveNamespaceOf).filter((one) => one !== undefined);
    return () => live;
  } catch (error) {
    signal.throwIfAborted();
    const message = error instanceof Error ? error.message : String(error);
    return () => {
      throw new SyncFailure([syncError(2017, `namespaces cannot be listed for a NamespaceSelector: ${message}`)]);
    };
  }
}

/** Undefined for a caller who may not list them. */
async function otherSyncs(client: Client, signal: AbortSignal): Promise<ReadonlySet<string> | undefined> {
  try {
    const lists = await Promise.all([ROOT_SYNCS, REPO_SYNCS].map((type) => client.list(type, { signal })));
    return new Set(
      lists.flatMap(({ items }) => items.map(({ kind, metadata }) => `${kind}/${metadata.namespace}/${metadata.name}`)),
    );
  } catch (error) {
    if (error instanceof ApiError && error.code === 403) return undefined;
    throw error;
  }
}
