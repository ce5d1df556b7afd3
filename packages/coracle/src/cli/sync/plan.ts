/** `coracle sync plan`: what the next attempt of a sync would create, change and prune, with the effect on each guest. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { ApiError } from '@coracle/apimachinery/meta/status';
import type { Client } from '@coracle/client/client';
import { readDirectory } from '@coracle/gitops/git/read-directory';
import { SourceError } from '@coracle/gitops/git/source';
import type { Sync } from '@coracle/gitops/kinds/kinds';
import { SyncFailure } from '@coracle/gitops/status/sync-error';
import type { SyncIdentity } from '@coracle/gitops/status/sync-identity';
import type { ForecastItem } from '@coracle/gitops/sync/forecast';
import { type Preview, previewSync } from '@coracle/gitops/sync/preview';
import type { ReadonlyVm } from '@coracle/kubevirt/kinds/kubevirt';
import { systemClock } from '@coracle/runtime/clock/clock';
import { clusterFrom } from '../../config/cluster.ts';
import { type CommandContext, CommandError, oneLine, textFlag, UsageError } from '../command.ts';
import { outputFlag } from '../output-flag.ts';
import { type EffectOnMachine, effectOnMachine } from './machine-effect.ts';
import { type PlannedItem, planText } from './plan-text.ts';
import { findSync, syncTarget } from './sync-target.ts';

/** Exit code 1 when something of it would fail. */
export async function plan(context: CommandContext): Promise<number> {
  const { flags, words, signal, print, note } = context;
  const asJson = outputFlag(flags) === 'json';
  if (words.length > 1) throw new UsageError('sync plan takes at most one sync (see: coracle sync plan --help)');
  const path = textFlag(flags, 'path');
  const clusterName = textFlag(flags, 'cluster-name');
  const given = textFlag(flags, 'namespace');
  syncTarget(words[0], { given, ofContext: '' });
  const cluster = await clusterFrom(context);
  const directory = await mkdtemp(join(tmpdir(), 'coracle-plan-'));
  try {
    const sync = syncTarget(words[0], { given, ofContext: cluster.namespace });
    const { client } = cluster;
    const object = (await findSync(client, sync, signal)) ?? (path === undefined ? undefined : uncommitted(sync));
    if (!object)
      throw new CommandError(
        `there is no ${sync.kind} ${sync.namespace}/${sync.name} (to plan files of this host: --path DIR)`,
      );
    const tree = path === undefined ? undefined : await readDirectory(path);
    const preview = await previewSync({
      sync,
      object,
      ...(path !== undefined && tree && { tree, readAll: () => readDirectory(path, { isAll: true }) }),
      ...(clusterName !== undefined && { clusterName }),
      client,
      directory,
      clock: systemClock,
      signal,
    });
    const items = await planned(preview, client, signal);
    const errors = preview.errors.map(({ errorMessage }) => errorMessage.split('\n')[0]!);
    const plan = {
      sync,
      commit: preview.commit ?? null,
      synced: object.status?.lastSyncedCommit ?? null,
      items,
      errors,
    };
    if (asJson) print(JSON.stringify(plan, undefined, 2));
    else {
      print(planText({ ...plan, ...(path !== undefined && { path }) }));
      for (const error of errors) note(error);
    }
    return errors.length > 0 ? 1 : 0;
  } catch (error) {
    if (error instanceof SyncFailure || error instanceof SourceError) throw new CommandError(oneLine(error));
    throw error;
  } finally {
    await cluster.close();
    await rm(directory, { recursive: true, force: true });
  }
}

/** A sync that is not there, for files that are to be its source. */
const uncommitted = (sync: SyncIdentity): DeepReadonly<Sync> => ({
  apiVersion: 'configsync.gke.io/v1beta1',
  kind: sync.kind,
  metadata: { namespace: sync.namespace, name: sync.name },
  spec: { sourceFormat: 'unstructured', git: { repo: 'https://localhost/none', branch: 'main', auth: 'none' } },
});

async function planned({ items }: Preview, client: Client, signal: AbortSignal): Promise<PlannedItem[]> {
  const result: PlannedItem[] = [];
  for (const item of items) {
    const { live: _live, wanted: _wanted, ...shown } = item;
    const vm = await effectOf(item, client, signal);
    result.push({ ...shown, ...(vm && { vm }) });
  }
  return result;
}

/** Of a machine alone; undefined for one that nothing is done to. */
async function effectOf(
  { ref, action, live, wanted }: ForecastItem,
  client: Client,
  signal: AbortSignal,
): Promise<EffectOnMachine | undefined> {
  if (ref.group !== 'kubevirt.io' || ref.kind !== 'VirtualMachine') return undefined;
  const [before, after] = [live, wanted] as unknown as (ReadonlyVm | undefined)[];
  try {
    switch (action) {
      case 'create':
      case 'change':
      case 'adopt':
        return after && (await effectOnMachine({ before, after }, { client, signal }));
      case 'prune':
        return await effectOnMachine({ before, after: undefined }, { client, signal });
      case 'none':
      case 'let-go':
      case 'keep':
      case 'fail':
        return undefined;
    }
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof ApiError)) throw error;
    return { effect: 'unknown', why: error.message };
  }
}
