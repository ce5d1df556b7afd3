/** A directory of this host, checked by the functions that a sync checks a commit with. */
import { CONFIG_SYNC_NAMESPACE, type SyncError } from '../../../api/kinds/config-sync/kinds.ts';
import { systemClock } from '../../../base/clock/clock.ts';
import { createLinkedController } from '../../../base/signal/linked-controller.ts';
import { createKindCatalog } from '../../../gitops/apply/kind-catalog.ts';
import { readDirectory } from '../../../gitops/git/read-directory.ts';
import { SourceError } from '../../../gitops/git/source.ts';
import { type DeclaredSet, declare, type KindLookup } from '../../../gitops/plan/declare.ts';
import { type ParsedSource, parseManifests } from '../../../gitops/render/parse-manifests.ts';
import { render } from '../../../gitops/render/render.ts';
import { SyncFailure } from '../../../gitops/status/sync-error.ts';
import type { SyncIdentity } from '../../../gitops/status/sync-identity.ts';
import { clusterFrom } from '../../config/cluster.ts';
import { type CommandContext, CommandError, oneLine, textFlag, UsageError } from '../command.ts';
import { durationFlag } from '../duration-flag.ts';
import { offlineKinds } from './offline-kinds.ts';

const API_SERVER_MS = 15_000;

export interface LocalSource {
  readonly sync: SyncIdentity;
  readonly set: DeclaredSet;
}

/** Reads and checks what the flags name. Throws UsageError, and CommandError for what cannot be read at all. */
export async function openLocalSource(context: CommandContext): Promise<LocalSource> {
  const { flags } = context;
  const namespace = textFlag(flags, 'namespace');
  const format = textFlag(flags, 'source-format') ?? (namespace === undefined ? 'hierarchy' : 'unstructured');
  if (format !== 'hierarchy' && format !== 'unstructured')
    throw new UsageError(`--source-format takes hierarchy or unstructured, not ${JSON.stringify(format)}`);
  if (namespace !== undefined && format === 'hierarchy')
    throw new UsageError(
      '--namespace means the source of a RepoSync, which is unstructured: leave --source-format out',
    );
  if (format === 'hierarchy')
    throw new CommandError('format hierarchy is not supported yet; say --source-format=unstructured');
  const sync: SyncIdentity =
    namespace === undefined
      ? { kind: 'RootSync', namespace: CONFIG_SYNC_NAMESPACE, name: 'root-sync' }
      : { kind: 'RepoSync', namespace, name: 'repo-sync' };
  const parsed = await parsedDirectory(textFlag(flags, 'path') ?? '.');
  const kinds = flags['no-api-server-check'] === true ? offlineKinds() : await servedKinds(context);
  return { sync, set: declare(parsed, sync, kinds) };
}

async function parsedDirectory(path: string): Promise<ParsedSource> {
  try {
    return parseManifests(render(await readDirectory(path), '').tree);
  } catch (error) {
    if (error instanceof SourceError || error instanceof SyncFailure) throw new CommandError(oneLine(error));
    throw error;
  }
}

async function servedKinds(context: CommandContext): Promise<KindLookup> {
  const timeoutMs = durationFlag(context.flags, 'api-server-timeout', { or: API_SERVER_MS });
  const linked = createLinkedController(context.signal);
  const timer = setTimeout(() => linked.abort(new Error(`no answer within ${timeoutMs} ms`)), timeoutMs);
  try {
    const cluster = await clusterFrom(context);
    try {
      return (await createKindCatalog(cluster.client, systemClock).kinds(linked.signal)).byVersion;
    } finally {
      await cluster.close();
    }
  } catch (error) {
    context.signal.throwIfAborted();
    const why = oneLine(linked.signal.aborted ? linked.signal.reason : error);
    throw new CommandError(`the server cannot be asked which kinds it has (or say --no-api-server-check): ${why}`);
  } finally {
    clearTimeout(timer);
    linked.release();
  }
}

/** One error as text: what is wrong, and the files and objects it is about. */
export function errorText({ errorMessage, errorResources = [] }: SyncError): string {
  const [first = ''] = errorMessage.split('\n');
  const sources = errorResources.flatMap(({ sourcePath }) =>
    sourcePath === undefined ? [] : [`source: ${sourcePath}`],
  );
  return [first, ...new Set(sources)].join('\n  ');
}
