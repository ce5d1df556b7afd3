/** The objects that a source declares, as files: what `--output` of hydrate and vet names. */
import { mkdir, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import type { Declared } from '@coracle/gitops/plan/declared';
import { DEPTH_SUFFIX, HNC_MANAGED_BY, MANAGED, MANAGED_BY } from '@coracle/gitops/status/metadata-keys';
import { stringify } from 'yaml';
import { type CommandContext, CommandError, textFlag, UsageError } from '../command.ts';
import type { ClusterSet } from './local-source.ts';

export type OutputFormat = 'yaml' | 'json';

/** `--format`. Throws UsageError. */
export function formatFlag({ flags }: CommandContext): OutputFormat {
  const format = textFlag(flags, 'format') ?? 'yaml';
  if (format !== 'yaml' && format !== 'json')
    throw new UsageError(`--format takes yaml or json, not ${JSON.stringify(format)}`);
  return format;
}

/** Annotations and labels that say how a source is read are not for a cluster that is given its objects by hand. */
const IS_READING = /^(configmanagement|configsync)\.gke\.io\//;

/** An object as somebody would apply it. */
function cleaned({ object }: Declared): UnstructuredObject {
  const { annotations, labels, ...metadata } = object.metadata;
  const only = (map: Readonly<Record<string, string>> | undefined, isKept: (key: string, value: string) => boolean) =>
    Object.fromEntries(Object.entries(map ?? {}).filter(([key, value]) => isKept(key, value)));
  const kept = only(
    annotations,
    (key, value) =>
      key === MANAGED || !(IS_READING.test(key) || (key === HNC_MANAGED_BY && value === MANAGED_BY.value)),
  );
  const keptLabels = only(labels, (key) => !IS_READING.test(key) && !key.endsWith(DEPTH_SUFFIX));
  return {
    ...object,
    metadata: {
      ...metadata,
      ...(Object.keys(keptLabels).length > 0 && { labels: keptLabels }),
      ...(Object.keys(kept).length > 0 && { annotations: kept }),
    },
  };
}

const text = (objects: readonly UnstructuredObject[], format: OutputFormat): string =>
  format === 'json'
    ? `${JSON.stringify(objects.length === 1 ? objects[0] : { apiVersion: 'v1', kind: 'List', items: objects }, undefined, 2)}\n`
    : objects.map((object) => stringify(object, { lineWidth: 0, aliasDuplicateObjects: false })).join('---\n');

/** Part of a path, whatever the source calls it. */
const part = (name: string): string =>
  name
    .toLowerCase()
    .replace(/[^a-z0-9._:@-]/g, '_')
    .replace(/^\.+/, (dots) => '_'.repeat(dots.length));

/** Paths of objects: `namespace/kind_name.ext`, with the group where two would have one path. */
function pathsOf(objects: readonly Declared[], directory: string, format: OutputFormat): Map<string, Declared> {
  const plain = ({ ref }: Declared, kind: string): string =>
    join(directory, ref.namespace === '' ? '' : part(ref.namespace), `${kind}_${part(ref.name)}`);
  const counts = new Map<string, number>();
  for (const one of objects) {
    const path = plain(one, part(one.ref.kind));
    counts.set(path, (counts.get(path) ?? 0) + 1);
  }
  const paths = new Map<string, Declared>();
  for (const one of objects) {
    const short = plain(one, part(one.ref.kind));
    const path = counts.get(short) === 1 ? short : plain(one, part(`${one.ref.kind}.${one.ref.group}`));
    let free = `${path}.${format}`;
    for (let at = 2; paths.has(free); at++) free = `${path}_${at}.${format}`;
    paths.set(free, one);
  }
  return paths;
}

export interface WriteOptions {
  readonly output: string;
  readonly format: OutputFormat;
  /** One file with all of them. */
  readonly isFlat: boolean;
}

/**
 * Writes the objects of all clusters. A directory of an earlier time is replaced when it holds nothing but such files.
 * @throws CommandError for a place that holds something else, or cannot be written
 */
export async function writeObjects(clusters: readonly ClusterSet[], options: WriteOptions): Promise<void> {
  const { output, format, isFlat } = options;
  const lists = clusters.map(({ cluster, set }) => ({ cluster, objects: [...set.enabled, ...set.disabled] }));
  try {
    if (isFlat) {
      await mkdir(dirname(output), { recursive: true });
      await writeFile(
        output,
        text(
          lists.flatMap(({ objects }) => objects.map(cleaned)),
          format,
        ),
      );
      return;
    }
    await clear(output);
    for (const { cluster, objects } of lists)
      for (const [path, one] of pathsOf(objects, clusters.length > 1 ? part(cluster) : '', format)) {
        const file = join(output, path);
        await mkdir(dirname(file), { recursive: true });
        await writeFile(file, text([cleaned(one)], format), { flag: 'wx' });
      }
  } catch (error) {
    if (error instanceof CommandError) throw error;
    throw new CommandError(`cannot write ${output}: ${(error as Error).message}`);
  }
}

const IS_OURS = /^[a-z0-9._-]+_[a-z0-9._:@-]+\.(yaml|json)$/;

async function clear(directory: string): Promise<void> {
  const found = await stat(directory).catch(() => undefined);
  if (!found) {
    await mkdir(directory, { recursive: true });
    return;
  }
  if (!found.isDirectory()) throw new CommandError(`${directory} is not a directory; choose another --output`);
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  const other = entries.find((entry) => !entry.isDirectory() && !(entry.isFile() && IS_OURS.test(entry.name)));
  if (other)
    throw new CommandError(
      `${directory} holds ${join(other.parentPath, other.name)}, which this command did not write; choose another --output`,
    );
  for (const entry of await readdir(directory)) await rm(join(directory, entry), { recursive: true });
}
