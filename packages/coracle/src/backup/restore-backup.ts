/**
 * Makes a data directory of a backup: everything is written beside its place and checked against its digest, then renamed
 * as a whole. A crash at any step leaves nothing, or all of it.
 */
import { createHash, randomInt } from 'node:crypto';
import { chmod, mkdir, open } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { divideHistory, inspectStore } from '@coracle/apiserver/storage/store-copy';
import { distrust } from '../config/trusted-dir.ts';
import { BackupError } from './backup-error.ts';
import { chunkPath, digestFile, mapPath, openInside, readManifest, sha256, wholePath } from './backup-layout.ts';
import { readMap } from './chunk-map.ts';
import { checkRoom, diskFull, type FreeBytes, freeBytes, isDiskFull } from './disk-room.ts';
import { CHUNK_BYTES, type ChunkedFile, type Manifest, STORE_PATH, type WholeFile } from './manifest.ts';
import { beginPartial, refuseTaken } from './partial-directory.ts';
import { readFully, writeSparsely } from './store-chunks.ts';

export interface RestoreOptions {
  /** Directory of the backup. */
  readonly from: string;
  /** The data directory to make: nothing, or an empty directory. */
  readonly to: string;
  readonly signal: AbortSignal;
  readonly free?: FreeBytes;
  /** Called before each step; for tests that break off there. */
  readonly onStep?: (step: string) => void;
}

/**
 * Least number of revisions between what the original could have given out and what a restored one begins with; as many
 * again are added by chance, so that two copies of one backup do not count alike.
 */
const GAP = 2 ** 40;
const TAKEN = 'a backup is restored into a new or an empty directory only (--data-dir DIR)';

/** Restores a backup. Throws BackupError: nothing is left behind then. */
export async function restoreBackup(options: RestoreOptions): Promise<Manifest> {
  const { from, to, signal, free = freeBytes, onStep: step = () => {} } = options;
  const manifest = await readManifest(from);
  refuseTaken(to, TAKEN);
  const problem = distrust(to);
  if (problem !== undefined) throw new BackupError(`${to} is not used: ${problem}`);
  const needed = bytesOf(manifest);
  await checkRoom(dirname(to), needed, free);
  step('before all');
  const partial = await beginPartial(to, TAKEN);
  const written = { bytes: 0 };
  try {
    for (const file of manifest.files) {
      step(`file ${file.path}`);
      await restoreWhole(from, file, { root: partial.path, written, signal });
    }
    for (const [index, file] of manifest.chunked.entries()) {
      step(`file ${file.path}`);
      await restoreChunked(from, { ...file, index }, { root: partial.path, written, signal });
    }
    step('state');
    const store = join(partial.path, STORE_PATH);
    inspectStore(store, { signal });
    divideHistory(store, GAP + randomInt(GAP));
    step('before rename');
    await partial.finish();
    step('done');
    return manifest;
  } catch (error) {
    await partial.discard();
    if (isDiskFull(error)) throw diskFull(dirname(to), { needed, free: await free(dirname(to)) });
    throw error;
  }
}

/** Most bytes that a restored backup takes. */
const bytesOf = ({ files, chunked }: Manifest): number =>
  files.reduce((sum, { bytes }) => sum + bytes, 0) + chunked.reduce((sum, { dataBytes }) => sum + dataBytes, 0);

interface Target {
  readonly root: string;
  readonly written: { bytes: number };
  readonly signal: AbortSignal;
}

async function create(target: Target, path: string) {
  await mkdir(dirname(join(target.root, path)), { recursive: true, mode: 0o700 });
  return open(join(target.root, path), 'wx', 0o600);
}

async function restoreWhole(from: string, { path, bytes, sha256 }: WholeFile, target: Target): Promise<void> {
  const source = await openInside(from, wholePath(path));
  try {
    const file = await create(target, path);
    try {
      const hash = createHash('sha256');
      let seen = 0;
      for await (const part of source.createReadStream({ autoClose: false, highWaterMark: 1024 * 1024 })) {
        target.signal.throwIfAborted();
        seen += (part as Buffer).length;
        if (seen > bytes) break;
        hash.update(part as Buffer);
        await file.writeFile(part as Buffer);
      }
      if (seen !== bytes || hash.digest('hex') !== sha256)
        throw new BackupError(`${wholePath(path)} is damaged: it does not fit its digest (coracle backup verify)`);
    } finally {
      await file.close();
    }
  } finally {
    await source.close();
  }
}

async function restoreChunked(
  from: string,
  file: ChunkedFile & { readonly index: number },
  target: Target,
): Promise<void> {
  const { path, bytes, index } = file;
  const output = await create(target, path);
  const buffer = Buffer.alloc(Math.min(CHUNK_BYTES, bytes));
  let dataBytes = 0;
  try {
    for await (const chunk of readMap(from, mapPath(index), { ...file, what: path })) {
      target.signal.throwIfAborted();
      dataBytes += chunk.bytes;
      // Before it is written: the room was checked for what the manifest says.
      if (dataBytes > file.dataBytes)
        throw new BackupError(`${mapPath(index)} holds more than ${file.dataBytes} bytes`);
      const data = buffer.subarray(0, chunk.bytes);
      const source = await openInside(from, chunkPath(chunk.digest));
      try {
        const { size } = await source.stat();
        if (size === chunk.bytes) await readFully(source, data, 0);
        if (size !== chunk.bytes || sha256(data) !== chunk.digest)
          throw new BackupError(`${chunkPath(chunk.digest)}, a part of ${path}, is damaged (coracle backup verify)`);
      } finally {
        await source.close();
      }
      await writeSparsely(output, data, chunk.index * CHUNK_BYTES);
    }
    await output.truncate(bytes);
  } finally {
    await output.close();
  }
  // Files of the image store are never changed, and are named by their digest.
  if (path.startsWith('images/files/')) {
    if (!path.endsWith(`sha256-${(await digestFile(join(target.root, path))).sha256}`))
      throw new BackupError(`${path} does not fit its name`);
    await chmod(join(target.root, path), 0o400);
  }
}
