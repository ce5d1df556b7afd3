/** Puts files into a backup in chunks of 4 MiB, each named by its digest and kept once; zeros are left out. */
import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, link, lstat, mkdir, open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { BackupError } from './backup-error.ts';
import { chunkPath, mapPath, sha256 } from './backup-layout.ts';
import { DamagedMapError, readMap } from './chunk-map.ts';
import { dataExtents } from './data-extents.ts';
import { CHUNK_BYTES, type ChunkedFile, type Manifest } from './manifest.ts';

/** A backup that a new one takes from what has not changed. */
export interface Base {
  readonly root: string;
  readonly manifest: Manifest;
}

export interface StoreChunksOptions {
  /** Directory of the backup in the making. */
  readonly root: string;
  readonly base?: Base;
  readonly signal: AbortSignal;
}

/** What was written and what was there. */
export interface StoreCounts {
  /** Bytes that were written. */
  written: number;
  /** Bytes taken from the base. */
  shared: number;
}

export interface ChunkStore {
  readonly counts: StoreCounts;
  /** Stores the file at `source` as the `index`th of the manifest. Throws what the file system says, and BackupError. */
  store(source: string, target: { readonly path: string; readonly index: number }): Promise<ChunkedFile>;
}

/** What a chunk is made of on the disk: whole blocks of zeros stay holes. */
const BLOCK = 64 * 1024;
const ZEROS = Buffer.alloc(CHUNK_BYTES);
const isZero = (data: Buffer): boolean => data.equals(ZEROS.subarray(0, data.length));

/** Opens the chunks of a backup in the making. Memory: one chunk of 4 MiB. */
export function createChunkStore({ root, base, signal }: StoreChunksOptions): ChunkStore {
  const buffer = Buffer.alloc(CHUNK_BYTES);
  const counts: StoreCounts = { written: 0, shared: 0 };
  const known = new Map(base?.manifest.chunked.map((file, index) => [file.path, { file, index }]));

  /** True when the base has the chunk, which is then here too. */
  const share = async (digest: string, bytes: number): Promise<boolean> => {
    const path = chunkPath(digest);
    if ((await lstat(join(root, path)).catch(() => undefined))?.isFile()) return true;
    if (!base) return false;
    const found = await lstat(join(base.root, path)).catch(() => undefined);
    if (!found?.isFile() || found.size !== bytes) return false;
    await mkdir(join(root, 'chunks', digest.slice(0, 2)), { recursive: true, mode: 0o700 });
    try {
      await link(join(base.root, path), join(root, path));
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      // As many links as the file system allows: one more copy begins a new row.
      if (code === 'EMLINK') return false;
      if (code === 'EXDEV' || code === 'EPERM' || code === 'ENOTSUP' || code === 'EOPNOTSUPP')
        throw new BackupError(
          `--base must be on the file system of the new backup, which must support hard links (${code}): ${base.root}`,
        );
      throw error;
    }
    counts.shared += bytes;
    return true;
  };

  const put = async (data: Buffer): Promise<string> => {
    const digest = sha256(data);
    if (await share(digest, data.length)) return digest;
    const path = join(root, chunkPath(digest));
    await mkdir(join(root, 'chunks', digest.slice(0, 2)), { recursive: true, mode: 0o700 });
    const file = await open(path, 'wx', 0o600);
    try {
      counts.written += await writeSparsely(file, data, 0);
      await file.truncate(data.length);
    } finally {
      await file.close();
    }
    return digest;
  };

  /** The map of the base, when it is of this very content; its chunks are then here. */
  const reuse = async (found: { file: ChunkedFile; index: number }, map: MapWriter): Promise<boolean> => {
    const lines = readMap(base!.root, mapPath(found.index), { ...found.file, what: found.file.path });
    for await (const { index, digest, bytes } of lines) {
      if (!(await share(digest, bytes))) return false;
      await map.add(index, digest, bytes);
    }
    return true;
  };

  return {
    counts,
    async store(source, { path, index }) {
      const file = await open(source, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
      try {
        const found = await file.stat({ bigint: true });
        if (!found.isFile()) throw new BackupError(`${source} is not a regular file; it is not read`);
        const bytes = Number(found.size);
        const same = { bytes, changed: String(found.mtimeNs) };
        await mkdir(join(root, 'maps'), { recursive: true, mode: 0o700 });
        const before = known.get(path);
        if (before && before.file.source.bytes === bytes && before.file.source.changed === same.changed) {
          const map = await openMap(join(root, mapPath(index)));
          const isWhole = reuse(before, map).catch((error: unknown) => {
            // What the base cannot tell is read.
            if (error instanceof DamagedMapError) return false;
            throw error;
          });
          if (await isWhole.finally(() => map.close()))
            return { path, bytes, dataBytes: map.dataBytes, sha256: map.digest(), source: same };
          await rm(join(root, mapPath(index)));
        }
        const map = await openMap(join(root, mapPath(index)));
        try {
          const extents = await dataExtents(source, { bytes, blocks: Number(found.blocks), signal });
          let next = 0;
          for (const { start, end } of extents)
            for (let at = Math.max(next, Math.floor(start / CHUNK_BYTES)); at * CHUNK_BYTES < end; at++) {
              signal.throwIfAborted();
              next = at + 1;
              const data = buffer.subarray(0, Math.min(CHUNK_BYTES, bytes - at * CHUNK_BYTES));
              await readFully(file, data, at * CHUNK_BYTES);
              if (!isZero(data)) await map.add(at, await put(data), data.length);
            }
        } finally {
          await map.close();
        }
        return { path, bytes, dataBytes: map.dataBytes, sha256: map.digest(), source: same };
      } finally {
        await file.close();
      }
    },
  };
}

interface MapWriter {
  readonly dataBytes: number;
  add(index: number, digest: string, bytes: number): Promise<void>;
  close(): Promise<void>;
  /** Once it is closed. */
  digest(): string;
}

async function openMap(path: string): Promise<MapWriter> {
  const file = await open(path, 'wx', 0o600);
  const hash = createHash('sha256');
  let [text, dataBytes] = ['', 0];
  const flush = async (): Promise<void> => {
    hash.update(text);
    await file.writeFile(text);
    text = '';
  };
  return {
    get dataBytes() {
      return dataBytes;
    },
    async add(index, digest, bytes) {
      dataBytes += bytes;
      text += `${index} ${digest}\n`;
      if (text.length > BLOCK) await flush();
    },
    async close() {
      await flush();
      await file.close();
    },
    digest: () => hash.digest('hex'),
  };
}

/** Writes `data` at `position`, but for its blocks of zeros. Resolves to the bytes that were written. */
export async function writeSparsely(file: FileHandle, data: Buffer, position: number): Promise<number> {
  let written = 0;
  for (let from = 0; from < data.length; from += BLOCK) {
    const block = data.subarray(from, from + BLOCK);
    if (isZero(block)) continue;
    for (let done = 0; done < block.length; )
      done += (await file.write(block, done, block.length - done, position + from + done)).bytesWritten;
    written += block.length;
  }
  return written;
}

/** Fills `data` from `position`. Throws when the file ends before. */
export async function readFully(file: FileHandle, data: Buffer, position: number): Promise<void> {
  for (let done = 0; done < data.length; ) {
    const { bytesRead } = await file.read(data, done, data.length - done, position + done);
    if (bytesRead === 0) throw new BackupError('a file became shorter while it was read');
    done += bytesRead;
  }
}
