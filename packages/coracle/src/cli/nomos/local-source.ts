/** A directory of this host, checked by the functions that a sync checks a commit with. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createKindCatalog } from '@coracle/gitops/apply/kind-catalog';
import { readDirectory } from '@coracle/gitops/git/read-directory';
import { SourceError } from '@coracle/gitops/git/source';
import {
  type DeclareOptions,
  declareSource,
  parseSource,
  type SourceFormat,
  type SourceLayout,
  type SourceSet,
} from '@coracle/gitops/hierarchy/declare-source';
import { clusterNamesOf } from '@coracle/gitops/hierarchy/select-cluster';
import { CONFIG_SYNC_NAMESPACE, type SyncError } from '@coracle/gitops/kinds/kinds';
import type { KindLookup } from '@coracle/gitops/plan/declare';
import type { ParsedSource } from '@coracle/gitops/render/parse-manifests';
import { render } from '@coracle/gitops/render/render';
import { SyncFailure } from '@coracle/gitops/status/sync-error';
import type { SyncIdentity } from '@coracle/gitops/status/sync-identity';
import { systemClock } from '@coracle/runtime/clock/clock';
import { createLinkedController } from '@coracle/runtime/signal/linked-controller';
import { clusterFrom } from '../../config/cluster.ts';
import { type CommandContext, CommandError, oneLine, textFlag, UsageError } from '../command.ts';
import { durationFlag } from '../duration-flag.ts';
import { offlineKinds } from './offline-kinds.ts';

const API_SERVER_MS = 15_000;
/** How upstream calls a cluster without a name. */
const NAMELESS = 'defaultcluster';

/** What a source declares for one cluster. */
export interface ClusterSet {
  /** `defaultcluster` for one without a name. */
  readonly cluster: string;
  readonly set: SourceSet;
  /** With those of kinds that are not served, when a server was asked. */
  readonly errors: readonly SyncError[];
}

export interface LocalSource {
  /** One for each cluster that the source names and `--clusters` asks for, and for those that it does not name. */
  readonly clusters: readonly ClusterSet[];
  /** Kinds that nobody knows without a server. */
  readonly unknownKinds: readonly string[];
}

/** Reads and checks what the flags name. Throws UsageError, and CommandError for what cannot be read at all. */
export async function openLocalSource(context: CommandContext): Promise<LocalSource> {
  const { flags } = context;
  const { sync, format } = readFlags(context);
  const layout: SourceLayout = { format, dir: '' };
  const parsed = await parsedDirectory(textFlag(flags, 'path') ?? '.', layout, context.signal);
  const isOffline = flags['no-api-server-check'] === true;
  const kinds = isOffline ? offlineKinds() : await servedKinds(context);
  const wanted = textFlag(flags, 'clusters')
    ?.split(',')
    .map((name) => name.trim());
  const names = ['', ...clusterNamesOf(parsed.objects)].filter((name) => wanted?.includes(name || NAMELESS) ?? true);
  const unknown = new Set<string>();
  const clusters = names.map((clusterName): ClusterSet => {
    const set = setFor(parsed, { ...layout, sync, kinds, clusterName, liveNamespaces: () => [] });
    for (const { errorResources = [] } of set.passing)
      for (const { gvk } of errorResources) if (gvk) unknown.add(`${gvk.kind}${gvk.group && `.${gvk.group}`}`);
    return { cluster: clusterName || NAMELESS, set, errors: [...set.errors, ...(isOffline ? [] : set.passing)] };
  });
  return { clusters, unknownKinds: isOffline ? [...unknown].sort() : [] };
}

function readFlags({ flags }: CommandContext): { readonly sync: SyncIdentity; readonly format: SourceFormat } {
  const namespace = textFlag(flags, 'namespace');
  const format = textFlag(flags, 'source-format') ?? (namespace === undefined ? 'hierarchy' : 'unstructured');
  if (format !== 'hierarchy' && format !== 'unstructured')
    throw new UsageError(`--source-format takes hierarchy or unstructured, not ${JSON.stringify(format)}`);
  if (namespace !== undefined && format === 'hierarchy')
    throw new UsageError(
      '--namespace means the source of a RepoSync, which is unstructured: leave --source-format out',
    );
  const sync: SyncIdentity =
    namespace === undefined
      ? { kind: 'RootSync', namespace: CONFIG_SYNC_NAMESPACE, name: 'root-sync' }
      : { kind: 'RepoSync', namespace, name: 'repo-sync' };
  return { sync, format };
}

async function parsedDirectory(path: string, layout: SourceLayout, signal: AbortSignal): Promise<ParsedSource> {
  const directory = await mkdtemp(join(tmpdir(), 'coracle-nomos-'));
  try {
    const readAll = () => readDirectory(path, { isAll: true });
    return parseSource((await render(await readDirectory(path), { dir: '', readAll, directory, signal })).tree, layout);
  } catch (error) {
    if (error instanceof SourceError || error instanceof SyncFailure) throw new CommandError(oneLine(error));
    throw error;
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** Of a source that is refused as a whole there are errors alone. */
function setFor(parsed: ParsedSource, options: DeclareOptions): SourceSet {
  try {
    return declareSource(parsed, options);
  } catch (error) {
    if (!(error instanceof SyncFailure)) throw error;
    const errors = [...parsed.errors, ...error.errors];
    return { enabled: [], disabled: [], errors, passing: [], held: [], isWhole: false, dynamic: [] };
  }
}

async function servedKinds(context: CommandContext): Promise<KindLookup> {
  const timeoutMs = durationFlag(context.flags, 'api-server-timeout', { or: API_SERVER_MS });
  const linked = createLinkedController(context.signal);
  const timer = setTimeout(() => linked.abort(new Error(`no answer within ${timeoutMs} ms`)), timeoutMs);
  try {
    await using cluster = await clusterFrom(context);
    return (await createKindCatalog(cluster.client, systemClock).kinds(linked.signal)).byVersion;
  } catch (error) {
    context.signal.throwIfAborted();
    const why = oneLine(linked.signal.aborted ? linked.signal.reason : error);
    throw new CommandError(`the server cannot be asked which kinds it has (or say --no-api-server-check): ${why}`);
  } finally {
    clearTimeout(timer);
    linked.release();
  }
}

/** Prints the errors of all clusters, each once for those that have it; how many there are. */
export function noteErrors(context: CommandContext, clusters: readonly ClusterSet[]): number {
  const clustersOf = new Map<string, string[]>();
  for (const { cluster, errors } of clusters)
    for (const error of errors) {
      const text = errorText(error);
      clustersOf.set(text, [...(clustersOf.get(text) ?? []), cluster]);
    }
  for (const [text, names] of clustersOf)
    context.note(names.length === clusters.length ? text : `${text}\n  clusters: ${names.join(', ')}`);
  return clustersOf.size;
}

/** One error as text: what is wrong, and the files it is about. */
function errorText({ errorMessage, errorResources = [] }: SyncError): string {
  const [first = ''] = errorMessage.split('\n');
  const sources = errorResources.flatMap(({ sourcePath }) =>
    sourcePath === undefined ? [] : [`source: ${sourcePath}`],
  );
  return [first, ...new Set(sources)].join('\n  ');
}
