/** What the next attempt of a sync would do: at the commit its source has now, or at files that are not committed yet. */
import { REPO_SYNCS, ROOT_SYNCS, type Sync } from '../../api/kinds/config-sync/kinds.ts';
import type { DeepReadonly } from '../../api/meta/object.ts';
import type { Clock } from '../../base/clock/clock.ts';
import type { Client } from '../../client/client.ts';
import { openInventory } from '../apply/inventory.ts';
import { createKindCatalog } from '../apply/kind-catalog.ts';
import { createTarget } from '../apply/target.ts';
import type { SourceTree } from '../git/source.ts';
import { parseManifests } from '../render/parse-manifests.ts';
import { render } from '../render/render.ts';
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
  /** With the rights of who asks. */
  readonly client: Client;
  /** Private, for what is fetched. */
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
  const { tree, commit } = await treeOf(options, plan);
  const parsed = parseManifests(render(tree, options.tree ? '' : plan.source.dir).tree);
  const target = createTarget(client, { clock, timeoutMs: () => plan.apiServerMs });
  const catalog = createKindCatalog(client, clock);
  const set = await declaredBy({ sync, plan, parsed, target, catalog, signal });
  const previous = (await openInventory({ client, sync, showsStatus: () => true }).read(signal)) ?? [];
  refuseToEmpty(previous, set);
  const there = await otherSyncs(client, signal);
  const found = await forecast({
    set,
    previous,
    // What an object says of its declared fields is left as it is.
    by: { sync, commit: commit ?? NO_COMMIT, context: plan.source.context, isGuarded: true },
    target,
    kinds: await catalog.kinds(signal),
    exists: ({ kind, namespace, name }) => there.has(`${kind}/${namespace}/${name}`),
    signal,
  });
  return { ...found, commit };
}

async function treeOf(
  { sync, tree, client, directory, clock, signal }: PreviewOptions,
  plan: ReturnType<typeof planOf>,
): Promise<{ tree: SourceTree; commit: string | undefined }> {
  if (tree) return { tree, commit: undefined };
  const source = openSource(plan.source.spec, { sync, client, directory, clock });
  const commit = await source.resolve(signal);
  return { tree: await source.read(commit, signal), commit };
}

async function otherSyncs(client: Client, signal: AbortSignal): Promise<ReadonlySet<string>> {
  const lists = await Promise.all([ROOT_SYNCS, REPO_SYNCS].map((type) => client.list(type, { signal })));
  return new Set(
    lists.flatMap(({ items }) => items.map(({ kind, metadata }) => `${kind}/${metadata.namespace}/${metadata.name}`)),
  );
}
