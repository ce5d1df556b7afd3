/**
 * Makes a backup of a data directory: the state at one revision, the volumes at one point in time, what identities rest on,
 * and images that nobody can pull. It is made beside its place and renamed, so a backup is whole or not there.
 */
import { randomUUID } from 'node:crypto';
import { chmod, copyFile, mkdir, readdir, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { formatTime } from '@coracle/apimachinery/meta/object';
import { copyStore, inspectStore, type StoreFacts } from '@coracle/apiserver/storage/store-copy';
import { readImageEntries } from '@coracle/node-agent/image/store-entries';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { DataDir } from '../config/data-dir.ts';
import { VERSION } from '../config/version.ts';
import { BackupError } from './backup-error.ts';
import { digestFile, MANIFEST, MANIFEST_DIGEST, readManifest, sha256, wholePath } from './backup-layout.ts';
import { checkRoom, diskFull, type FreeBytes, freeBytes, isDiskFull } from './disk-room.ts';
import { type ChunkedFile, KEY_PATHS, kindOfPath, type Manifest, STORE_PATH, type WholeFile } from './manifest.ts';
import { beginPartial } from './partial-directory.ts';
import type { PoolView, SourceFile } from './pool-files.ts';
import { type Base, createChunkStore, type StoreCounts } from './store-chunks.ts';

export interface CreateOptions {
  readonly dir: DataDir;
  /** The directory to make. */
  readonly to: string;
  /** An earlier backup: what has not changed since is taken from it. */
  readonly base?: string;
  /** Whether the CA, its key and the key of tokens are in it. */
  readonly keys: boolean;
  /** Holds the volumes still, once the state has been copied. */
  readonly openPool: () => Promise<PoolView>;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly free?: FreeBytes;
  /** Called before each step; for tests that break off there. */
  readonly onStep?: (step: string) => void;
}

export interface Created {
  readonly manifest: Manifest;
  readonly counts: StoreCounts;
}

const TAKEN = 'a backup gets a directory of its own';
const BLOCK_BYTES = 512;

/** Makes a backup. Throws BackupError and StorageError: nothing is left behind then. */
export async function createBackup(options: CreateOptions): Promise<Created> {
  const { dir, to, clock, signal, free = freeBytes, onStep: step = () => {} } = options;
  const base = options.base === undefined ? undefined : await openBase(options.base);
  const partial = await beginPartial(to, TAKEN);
  let [needed, pool]: [number, PoolView | undefined] = [0, undefined];
  try {
    step('state');
    const store = await copyState(dir, partial.path, signal);
    const files = [await describe(partial.path, STORE_PATH)];
    step('keys');
    for (const path of await wholeFiles(dir, options.keys)) files.push(await keepWhole(dir, partial.path, path));
    step('pool');
    // After the state: every volume that it knows of is there, unless somebody removed it meanwhile.
    pool = await options.openPool();
    const sources = [...pool.files, ...(await localImages(dir))];
    needed = await sizeOf(sources);
    if (!base) await checkRoom(dirname(to), needed, free);
    const chunks = createChunkStore({ root: partial.path, signal, ...(base && { base }) });
    const chunked: ChunkedFile[] = [];
    for (const { source, path } of sources) {
      step(`file ${path}`);
      chunked.push(await chunks.store(source, { path, index: chunked.length }));
    }
    step('release');
    const left = await pool.release().then(
      () => [],
      (error: Error) => [
        `snapshots of this backup are left in the pool (${error.message}); the next backup removes them`,
      ],
    );
    const manifest: Manifest = {
      version: 1,
      id: randomUUID(),
      createdAt: formatTime(clock.now()),
      program: VERSION,
      ...(base && { base: base.manifest.id }),
      store: { revision: store.revision, rows: store.rows, damaged: store.damaged.length },
      keys: options.keys,
      notes: [...notesOf(store, options.keys), ...pool.notes, ...left],
      files,
      chunked,
    };
    const text = `${JSON.stringify(manifest)}\n`;
    await writeFile(join(partial.path, MANIFEST), text, { mode: 0o600 });
    await writeFile(join(partial.path, MANIFEST_DIGEST), `${sha256(text)}  ${MANIFEST}\n`, { mode: 0o600 });
    step('before rename');
    await partial.finish();
    step('done');
    return { manifest, counts: chunks.counts };
  } catch (error) {
    await pool?.release().catch(() => {});
    await partial.discard();
    if (isDiskFull(error)) throw diskFull(dirname(to), { needed, free: await free(dirname(to)) });
    throw error;
  }
}

async function openBase(root: string): Promise<Base> {
  try {
    return { root, manifest: await readManifest(root) };
  } catch (error) {
    if (error instanceof BackupError) throw new BackupError(`--base ${root}: ${error.message}`);
    throw error;
  }
}

async function copyState(dir: DataDir, root: string, signal: AbortSignal): Promise<StoreFacts> {
  const copy = join(root, wholePath(STORE_PATH));
  await mkdir(dirname(copy), { recursive: true, mode: 0o700 });
  copyStore(dir.state, copy);
  return inspectStore(copy, { signal });
}

/** Keys, and ids of the agents that worked here: a restored directory knows by them which nodes were its own. */
async function wholeFiles(dir: DataDir, keys: boolean): Promise<string[]> {
  const nodes = await readdir(dir.nodes).catch(() => []);
  const ids = nodes.map((name) => `nodes/${name}/agent.id`).filter((path) => kindOfPath(path) === 'whole');
  const wanted = [...(keys ? KEY_PATHS : []), ...ids];
  const there = await Promise.all(
    wanted.map((path) =>
      stat(join(dir.root, path)).then(
        (found) => found.isFile(),
        () => false,
      ),
    ),
  );
  return wanted.filter((_path, i) => there[i]);
}

async function keepWhole(dir: DataDir, root: string, path: string): Promise<WholeFile> {
  const target = join(root, wholePath(path));
  await mkdir(dirname(target), { recursive: true, mode: 0o700 });
  await copyFile(join(dir.root, path), target);
  await chmod(target, 0o600);
  return describe(root, path);
}

async function describe(root: string, path: string): Promise<WholeFile> {
  return { path, ...(await digestFile(join(root, wholePath(path)))) };
}

/** Images that were imported here: the others are pulled again. */
async function localImages(dir: DataDir): Promise<SourceFile[]> {
  const entries = await readImageEntries(join(dir.images, 'local')).catch(() => []);
  const paths = entries.flatMap(({ path, entry }) => [
    path.slice(dir.root.length + 1),
    ...Object.values(entry.files).map(({ digest }) => `images/files/${digest.replace(':', '-')}`),
  ]);
  return [...new Set(paths)]
    .filter((path) => kindOfPath(path) === 'chunked')
    .map((path) => ({ path, source: join(dir.root, path) }));
}

async function sizeOf(sources: readonly SourceFile[]): Promise<number> {
  const sizes = await Promise.all(sources.map(async ({ source }) => (await stat(source)).blocks * BLOCK_BYTES));
  return sizes.reduce((sum, size) => sum + size, 0);
}

const notesOf = (store: StoreFacts, keys: boolean): string[] => [
  ...(store.damaged.length > 0
    ? [`${store.damaged.length} rows were damaged in the state itself: ${store.damaged.slice(0, 10).join(', ')}`]
    : []),
  ...(keys
    ? []
    : ['without keys: a restored control plane makes new ones, and every kubeconfig, token and certificate ends']),
];
