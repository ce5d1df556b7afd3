/** Files to objects: documents taken apart, lists flattened, what is for local tools left out. */
import { createHash } from 'node:crypto';
import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import { parseYaml } from '@coracle/apimachinery/schema/parse-json';
import type { ChangedTree } from '../git/source.ts';
import type { SyncError } from '../kinds/kinds.ts';
import { LOCAL_CONFIG } from '../status/metadata-keys.ts';
import { syncError } from '../status/sync-error.ts';

export interface ParsedObject {
  readonly object: UnstructuredObject;
  /** File that declares it. */
  readonly path: string;
  /** As the file has it, where this was made from that. */
  readonly origin?: UnstructuredObject;
  /** Why it is refused already; `isPlaceless`: which object of a cluster it would be is not known. */
  readonly problem?: { readonly code: number; readonly text: string; readonly isPlaceless?: boolean };
  /** It is here because its namespace is there: that is not made for it. */
  readonly needsNoNamespace?: boolean;
}

export interface ParsedSource {
  readonly objects: readonly ParsedObject[];
  readonly errors: readonly SyncError[];
  /** False when something could not be read that may declare any object. */
  readonly isWhole: boolean;
  /** Of namespaced objects that name none; without it that of the sync. */
  readonly defaultNamespace?: string;
}

/** Objects of one commit, also of those that selectors and inheritance make of them; more are an error. */
export const MAX_OBJECTS = 20_000;

/** Objects of files that were parsed before, by path, with the name (`SourceFile.id`) or a digest of what they were parsed from. */
export type ParsedFiles = Map<string, { readonly digest: string; readonly objects: readonly UnstructuredObject[] }>;

/**
 * Parses every file. What cannot be read is an error of that file alone. A file of `known` that is as it was is not parsed
 * again: its objects are the same ones. Afterwards `known` holds the files of this tree, and no others.
 */
export function parseManifests(
  { files, unread, defaultNamespace }: ChangedTree,
  known: ParsedFiles = new Map(),
): ParsedSource {
  const objects: ParsedObject[] = [];
  const errors: SyncError[] = unread.map(({ path, problem }) =>
    syncError(2001, `${path} is not read: ${problem}`, [{ sourcePath: path }]),
  );
  const decoder = new TextDecoder('utf-8', { fatal: true });
  const paths = new Set(files.map(({ path }) => path));
  for (const path of known.keys()) if (!paths.has(path)) known.delete(path);
  for (const { path, bytes, id } of files) {
    const digest =
      id ??
      createHash('sha256')
        .update(bytes ?? '')
        .digest('base64');
    const before = known.get(path);
    try {
      if (before?.digest !== digest) {
        if (bytes === undefined) throw new Error('it was not read');
        known.delete(path);
        const text = decoder.decode(bytes);
        const documents = path.endsWith('.json') ? [text] : documentsOf(text);
        known.set(path, { digest, objects: documents.flatMap(objectsOf) });
      }
      for (const object of known.get(path)!.objects) objects.push({ object, path });
    } catch (error) {
      const message = error instanceof Error ? error.message.split('\n')[0] : String(error);
      errors.push(syncError(1006, `${path} cannot be read: ${message}`, [{ sourcePath: path }]));
    }
  }
  if (objects.length > MAX_OBJECTS) {
    errors.push(
      syncError(2009, `the source declares ${objects.length} objects; at most ${MAX_OBJECTS} are allowed: split it`),
    );
    return { objects: [], errors, isWhole: false };
  }
  return {
    objects: objects.filter(({ object }) => !isLocal(object)),
    errors,
    isWhole: errors.length === 0,
    ...(defaultNamespace !== undefined && { defaultNamespace }),
  };
}

/** At lines that begin with `---`. A block text may not hold one, and upstream splits there as well. */
const documentsOf = (text: string): string[] =>
  text.split(/^---(?:[ \t].*)?\r?$/m).filter((one) => !/^(\s*(#.*)?(\r?\n|$))*$/.test(one));

function objectsOf(text: string): UnstructuredObject[] {
  const parsed = parseYaml(text);
  const [duplicate] = parsed.duplicates();
  if (duplicate !== undefined) throw new Error(`field ${duplicate} is there twice`);
  if (parsed.value === null) return [];
  return flatten(parsed.value);
}

function flatten(value: unknown): UnstructuredObject[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new Error('it holds something that is not an object');
  const object = value as Partial<UnstructuredObject>;
  for (const field of ['apiVersion', 'kind'] as const)
    if (typeof object[field] !== 'string' || object[field] === '') throw new Error(`an object has no ${field}`);
  if (object.kind!.endsWith('List') && Array.isArray(object['items'])) return object['items'].flatMap(flatten);
  const { metadata } = object;
  if (typeof metadata !== 'object' || metadata === null || Array.isArray(metadata))
    throw new Error(`a ${object.kind} has no metadata`);
  return [object as UnstructuredObject];
}

const isLocal = ({ metadata: { annotations } }: UnstructuredObject): boolean => {
  const value = (annotations as Record<string, unknown> | undefined)?.[LOCAL_CONFIG];
  return value !== undefined && value !== null && value !== 'false';
};
