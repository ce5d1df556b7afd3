/** `coracle backup`: makes, checks and restores backups of a data directory. */
import { resolve } from 'node:path';
import { systemClock } from '@coracle/runtime/clock/clock';
import { createBackup } from '../backup/create-backup.ts';
import type { Manifest } from '../backup/manifest.ts';
import { openPool } from '../backup/open-pool.ts';
import { restoreBackup } from '../backup/restore-backup.ts';
import { MAX_TROUBLES, verifyBackup } from '../backup/verify-backup.ts';
import { dataDirAt, defaultDataDir } from '../config/data-dir.ts';
import { type CommandContext, CommandError, textFlag, UsageError } from './command.ts';

const USAGE = 'backup takes: create DIR, verify DIR, or restore DIR (see: coracle backup --help)';

/** `coracle backup`. */
export async function backup(context: CommandContext): Promise<number> {
  const [verb, place, ...rest] = context.words;
  if (place === undefined || place === '' || rest.length > 0) throw new UsageError(USAGE);
  if (verb !== 'create' && (context.flags['base'] !== undefined || context.flags['without-keys'] === true))
    throw new UsageError(`--base and --without-keys are for create, not for ${verb}`);
  switch (verb) {
    case 'create':
      return create(context, resolve(place));
    case 'verify':
      return verify(context, resolve(place));
    case 'restore':
      return restore(context, resolve(place));
    default:
      throw new UsageError(USAGE);
  }
}

async function create({ flags, environment, print, note, signal }: CommandContext, to: string): Promise<number> {
  const dir = dataDirAt(textFlag(flags, 'data-dir') ?? defaultDataDir(environment));
  const base = textFlag(flags, 'base');
  const pool = await openPool({ dir, clock: systemClock, signal });
  const { manifest, counts } = await createBackup({
    dir,
    to,
    ...(base !== undefined && { base: resolve(base) }),
    keys: flags['without-keys'] !== true,
    openPool: pool.freeze,
    clock: systemClock,
    signal,
  }).finally(() => pool.close());
  const summary = { path: to, ...summaryOf(manifest), bytesWritten: counts.written, bytesShared: counts.shared };
  if (flags['json'] === true) print(JSON.stringify(summary));
  else {
    for (const text of manifest.notes) note(`note: ${text}`);
    print(
      `${describe(to, manifest)}; ${sizeText(counts.written)} of data written${manifest.base ? `, ${sizeText(counts.shared)} taken from the base` : ''}`,
    );
  }
  return 0;
}

async function verify({ flags, print, signal }: CommandContext, root: string): Promise<number> {
  const { manifest, troubles } = await verifyBackup(root, { signal });
  if (flags['json'] === true) print(JSON.stringify({ path: root, ...summaryOf(manifest), troubles }));
  else if (troubles.length === 0) print(`${describe(root, manifest)}; all digests fit`);
  else print(troubles.map((text) => `damaged: ${text}`).join('\n'));
  if (troubles.length === 0) return 0;
  throw new CommandError(
    `${root} is damaged in ${troubles.length === MAX_TROUBLES ? 'more than ' : ''}${troubles.length} ${troubles.length === 1 ? 'place' : 'places'}`,
  );
}

async function restore({ flags, environment, print, note, signal }: CommandContext, from: string): Promise<number> {
  const dir = dataDirAt(textFlag(flags, 'data-dir') ?? defaultDataDir(environment));
  const manifest = await restoreBackup({ from, to: dir.root, signal });
  if (flags['json'] === true) print(JSON.stringify({ path: from, dataDir: dir.root, ...summaryOf(manifest) }));
  else {
    for (const text of manifest.notes) note(`note: ${text}`);
    note(
      'note: do not run it beside the original or another copy: their VMs have the same UUIDs, serials and MAC addresses, and VMs that ran start again by their run strategy',
    );
    print(`restored ${describe(from, manifest)} into ${dir.root}; start it with: coracle up --data-dir ${dir.root}`);
  }
  return 0;
}

const volumesOf = ({ chunked }: Manifest): number =>
  new Set(chunked.flatMap(({ path }) => (/^claims\/[^/]+\/(disk|layer)/.test(path) ? [path.split('/')[1]] : []))).size;

const summaryOf = (manifest: Manifest) => ({
  id: manifest.id,
  createdAt: manifest.createdAt,
  ...(manifest.base !== undefined && { base: manifest.base }),
  revision: manifest.store.revision,
  keys: manifest.keys,
  volumes: volumesOf(manifest),
  bytes:
    manifest.files.reduce((sum, { bytes }) => sum + bytes, 0) +
    manifest.chunked.reduce((sum, { dataBytes }) => sum + dataBytes, 0),
  notes: manifest.notes,
});

function describe(path: string, manifest: Manifest): string {
  const volumes = volumesOf(manifest);
  return `${path}: backup of ${manifest.createdAt}, revision ${manifest.store.revision}, ${volumes} ${volumes === 1 ? 'volume' : 'volumes'}, ${manifest.keys ? 'with' : 'without'} keys`;
}

const sizeText = (bytes: number): string => `${(bytes / 1024 ** 2).toFixed(1)} MiB`;
