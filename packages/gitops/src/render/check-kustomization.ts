/**
 * What a kustomization asks for, before kustomize is run on it: all of it must lie in the source. Remote bases and files,
 * charts and paths that lead out are refused; kustomize itself confines plain files to the directory of their kustomization.
 */
import { posix } from 'node:path';
import { parseYaml } from '@coracle/apimachinery/schema/parse-json';
import type { SourceFile } from '../git/source.ts';
import { isKustomization } from '../git/tree-rules.ts';
import { SyncFailure, syncError } from '../status/sync-error.ts';

/** Fields that name kustomizations and files of objects. */
const OBJECTS = ['resources', 'bases', 'components'];
/** Fields that name kustomizations and files, or hold texts, that configure plugins. */
const PLUGINS = ['generators', 'transformers', 'validators'];
/** Fields that name files anywhere below them. */
const FILES = [
  'configMapGenerator',
  'configurations',
  'crds',
  'openapi',
  'patches',
  'patchesJson6902',
  'patchesStrategicMerge',
  'replacements',
  'secretGenerator',
];
const CHARTS = ['helmCharts', 'helmChartInflationGenerator', 'helmGlobals'];
/** Fields that name nothing. */
const PLAIN = [
  'apiVersion',
  'buildMetadata',
  'commonAnnotations',
  'commonLabels',
  'generatorOptions',
  'imageTags',
  'images',
  'inventory',
  'kind',
  'labels',
  'metadata',
  'namePrefix',
  'nameSuffix',
  'namespace',
  'replicas',
  'sortOptions',
  'vars',
];
const KNOWN = new Set([...OBJECTS, ...PLUGINS, ...FILES, ...CHARTS, ...PLAIN]);
/** Kustomizations of one source that lead to one another. */
const MAX_ROOTS = 1000;
/** What kustomize takes for a URL: scheme first, or after the `key=` of a generator. */
const REMOTE = /^\s*([^=\s]*=)?\s*https?:/i;

/**
 * Follows the kustomizations from `dir` ('' = the root) and gives the directories that they are in, within the source.
 * @throws SyncFailure KNV1068 that names the file and what it asks for
 */
export function checkKustomization(files: readonly SourceFile[], dir: string): string[] {
  const check = new Check(files);
  check.visit(dir, false);
  return check.roots();
}

class Check {
  readonly #files: ReadonlyMap<string, Uint8Array>;
  readonly #kustomizations = new Map<string, string[]>();
  /** Directory -> whether what it names configures plugins. */
  readonly #visited = new Map<string, boolean>();

  constructor(files: readonly SourceFile[]) {
    this.#files = new Map(files.map(({ path, bytes }) => [path, bytes]));
    for (const { path } of files) {
      if (!isKustomization(path)) continue;
      const dir = posix.dirname(path) === '.' ? '' : posix.dirname(path);
      this.#kustomizations.set(dir, [...(this.#kustomizations.get(dir) ?? []), path]);
    }
  }

  roots(): string[] {
    return [...this.#visited.keys()];
  }

  visit(start: string, isStartPlugin: boolean): void {
    const waiting: [dir: string, isPlugin: boolean][] = [[start, isStartPlugin]];
    for (let next = waiting.pop(); next; next = waiting.pop()) {
      const [dir, isPlugin] = next;
      const before = this.#visited.get(dir);
      if (before !== undefined && (before || !isPlugin)) continue;
      this.#visited.set(dir, isPlugin);
      if (this.#visited.size > MAX_ROOTS)
        throw refusal(dir, `more than ${MAX_ROOTS} kustomizations lead to one another`);
      for (const path of this.#kustomizations.get(dir) ?? []) waiting.push(...this.#read(path, dir, isPlugin));
    }
  }

  /** The kustomizations that one leads to. */
  #read(path: string, dir: string, isPlugin: boolean): [string, boolean][] {
    const value = this.#parse(path);
    const found: [string, boolean][] = [];
    for (const [field, content] of Object.entries(value)) {
      // Go takes fields in any letters: what is not spelled as documented might be one of those below.
      if (!KNOWN.has(field))
        throw refusal(path, `${path} has a field ${JSON.stringify(field)} that kustomize does not have`);
      if (CHARTS.includes(field))
        throw refusal(
          path,
          `${path} needs Helm charts (${field}), which are not rendered by kustomize here: use sourceType helm`,
        );
      const isOfPlugins = PLUGINS.includes(field);
      if (isOfPlugins || OBJECTS.includes(field)) {
        for (const entry of Array.isArray(content) ? content : content === null ? [] : [content]) {
          const next = this.#target(entry, { path, dir, field, isPlugin: isPlugin || isOfPlugins });
          if (next !== undefined) found.push([next, isPlugin || isOfPlugins]);
        }
      } else if (FILES.includes(field)) refuseRemote(content, path, field);
    }
    return found;
  }

  /** The directory that an entry names; undefined for a file or a text. */
  #target(
    entry: unknown,
    { path, dir, field, isPlugin }: { path: string; dir: string; field: string; isPlugin: boolean },
  ): string | undefined {
    if (typeof entry !== 'string') throw refusal(path, `${path}: an entry of ${field} is not a string`);
    if (isPlugin && PLUGINS.includes(field) && entry.includes('\n')) {
      refuseRemote(parsed(Buffer.from(entry), path), path, field);
      return undefined;
    }
    const to = posix.normalize(posix.join(dir === '' ? '.' : dir, entry)).replace(/\/$/, '');
    if (entry.includes('://') || /^https?:/i.test(entry))
      throw refusal(
        path,
        `${path}: ${field} names ${entry}: nothing is fetched for a kustomization; add it to the source`,
      );
    if (entry === '' || entry.startsWith('/') || to === '..' || to.startsWith('../'))
      throw refusal(path, `${path}: ${field} names ${JSON.stringify(entry)}, which leads out of the source`);
    const bytes = this.#files.get(to);
    if (bytes) {
      if (isPlugin) for (const one of documents(bytes)) refuseRemote(parsed(one, to), to, field);
      return undefined;
    }
    const target = to === '.' ? '' : to;
    if (!this.#kustomizations.has(target))
      throw refusal(
        path,
        `${path}: ${field} names ${entry}, which is neither a file of the source nor a directory with a kustomization in it; nothing is fetched for a kustomization`,
      );
    return target;
  }

  #parse(path: string): Record<string, unknown> {
    const value = parsed(this.#files.get(path)!, path) ?? {};
    if (typeof value !== 'object' || Array.isArray(value)) throw refusal(path, `${path} is not a kustomization`);
    return value as Record<string, unknown>;
  }
}

const documents = (bytes: Uint8Array): Uint8Array[] =>
  Buffer.from(bytes)
    .toString('utf8')
    .split(/^---(?:[ \t].*)?\r?$/m)
    .map((text) => Buffer.from(text));

function parsed(bytes: Uint8Array, path: string): unknown {
  try {
    const { value, duplicates } = parseYaml(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
    const [twice] = duplicates();
    if (twice !== undefined) throw new Error(`field ${twice} is there twice`);
    return value;
  } catch (error) {
    throw refusal(path, `${path} cannot be read: ${(error as Error).message.split('\n')[0]}`);
  }
}

/** Texts of generators are values; every other one may name a file, which kustomize would fetch when it is a URL. */
function refuseRemote(value: unknown, path: string, field: string): void {
  const waiting: unknown[] = [value];
  while (waiting.length > 0) {
    const one = waiting.pop();
    if (typeof one === 'string' && REMOTE.test(one))
      throw refusal(
        path,
        `${path}: ${field} names ${one.trim()}: nothing is fetched for a kustomization; add it to the source`,
      );
    if (typeof one !== 'object' || one === null) continue;
    for (const [key, inner] of Object.entries(one)) if (key !== 'literals') waiting.push(inner);
  }
}

const refusal = (path: string, text: string): SyncFailure =>
  new SyncFailure([syncError(1068, text, [{ sourcePath: path }])]);
