/** What a volume holds, for who downloads it: the disk, and the files that lie beside it. */
import { createHash, randomUUID } from 'node:crypto';
import { constants, type Dirent } from 'node:fs';
import { open, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { DISK_FILE, type VolumeContent, type VolumeFile } from '@coracle/cluster-rules/storage/pool-calls';
import type { Clock } from '@coracle/runtime/clock/clock';
import { createLinkedController } from '@coracle/runtime/signal/linked-controller';
import type { Pool, VolumeDisk } from '../storage/pool.ts';
import { filesOfDisk } from '../storage/pool.ts';
import { PoolError } from '../storage/pool-error.ts';
import { isHandle } from '../storage/pool-state.ts';
import { openDisk } from './read-disk.ts';

/** Directory of memory dumps in that of a volume. */
export const MEMORY_DUMPS = 'memory-dumps';
/** Readers of a node at once: each has a process of its own. */
const MAX_READERS = 16;
const CHUNK_BYTES = 512 * 1024;
/** Of one volume. */
const MAX_FILES = 1024;
/** What is still being written. */
const PARTIAL = 'partial';

export interface OpenFile {
  readonly bytes: number;
  /** All of it from there on. */
  chunks(from: number): AsyncIterable<Uint8Array>;
  close(): Promise<void>;
}

export interface VolumeReader {
  /** Throws PoolError. */
  list(handle: string): Promise<VolumeContent>;
  /** Opens one of the files by its name. Its chunks throw when a guest takes the volume. Throws PoolError. */
  open(handle: string, name: string, signal: AbortSignal): Promise<OpenFile>;
}

/** Makes the reader; nothing is open before `open`. */
export function createVolumeReader(pool: Pool, clock: Clock): VolumeReader {
  let readers = 0;
  const list: VolumeReader['list'] = async (handle) => {
    if (!isHandle(handle)) throw new PoolError('Invalid', 'a handle is a UID');
    const disk = pool.diskOf(handle);
    const dumps = await regularFiles(join(pool.directory, handle, MEMORY_DUMPS));
    // A claim for dumps has a disk too, which nobody ever wrote to.
    const isShown = dumps.length === 0 || !(await isBlank(disk));
    if (!isShown) return { files: dumps };
    const version = await versionOf(filesOfDisk(disk));
    return { files: [{ name: DISK_FILE, bytes: disk.size, version }, ...dumps] };
  };
  const openOne = async (handle: string, name: string, signal: AbortSignal): Promise<OpenFile> => {
    if (name !== DISK_FILE) {
      const { files } = await list(handle);
      // A name of the list, which is never a path.
      if (!files.some((file) => file.name === name)) throw new PoolError('NotFound', 'the volume has no such file');
      return openRegular(join(pool.directory, handle, MEMORY_DUMPS, name));
    }
    const life = createLinkedController(signal);
    const giveWay = (): void => life.abort(new Error('a guest has taken the volume'));
    const user = { vmi: `export-${randomUUID()}`, place: '', access: 'read' as const, giveWay };
    const { disk, release } = await pool.reserve(handle, user);
    try {
      const opened = await openDisk(disk, { clock, signal: life.signal });
      return {
        ...opened,
        async close() {
          await opened.close();
          release();
          life.release();
        },
      };
    } catch (error) {
      release();
      life.release();
      throw error;
    }
  };
  return {
    list,
    async open(handle, name, signal) {
      if (readers >= MAX_READERS) throw new PoolError('Conflict', `${MAX_READERS} volumes are being read already`);
      readers++;
      try {
        const file = await openOne(handle, name, signal);
        let isOpen = true;
        const close = async (): Promise<void> => {
          signal.removeEventListener('abort', stop);
          if (!isOpen) return;
          isOpen = false;
          await file.close();
          readers--;
        };
        // Also where nobody ever asks for a chunk.
        const stop = (): void => void close();
        signal.addEventListener('abort', stop, { once: true });
        if (signal.aborted) stop();
        return { ...file, close };
      } catch (error) {
        readers--;
        throw error;
      }
    },
  };
}

/** One layer of raw zeros, or of nothing. */
async function isBlank(disk: VolumeDisk): Promise<boolean> {
  const [file, ...more] = filesOfDisk(disk);
  if (file === undefined || more.length > 0) return false;
  const { blocks } = await stat(file);
  return blocks * 512 <= (disk.format === 'raw' ? 0 : EMPTY_QCOW2_BYTES);
}

/** What an image of qcow2 with nothing in it may take: header and tables, no cluster of data. */
const EMPTY_QCOW2_BYTES = 4 * 65536;

/** Of the files that make up one: whoever writes to one of them, or puts another in its place, changes it. */
async function versionOf(paths: readonly string[]): Promise<string> {
  const facts = await Promise.all(paths.map((path) => stat(path, { bigint: true })));
  const text = facts.map(({ dev, ino, size, ctimeNs }) => [dev, ino, size, ctimeNs].join(' ')).join('\n');
  return createHash('sha256').update(text).digest('hex').slice(0, 32);
}

async function regularFiles(directory: string): Promise<VolumeFile[]> {
  const entries = await readdir(directory, { withFileTypes: true }).catch((): Dirent[] => []);
  const names = entries.filter((entry) => entry.isFile() && entry.name !== PARTIAL).map(({ name }) => name);
  const found = names.sort().slice(0, MAX_FILES);
  return Promise.all(
    found.map(async (name) => {
      const path = join(directory, name);
      return { name, bytes: (await stat(path)).size, version: await versionOf([path]) };
    }),
  );
}

async function openRegular(path: string): Promise<OpenFile> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  const { size } = await file.stat();
  return {
    bytes: size,
    close: () => file.close(),
    async *chunks(from) {
      for (let at = from; at < size; ) {
        const { bytesRead, buffer } = await file.read(Buffer.alloc(Math.min(CHUNK_BYTES, size - at)), { position: at });
        if (bytesRead === 0) throw new Error('the file has become shorter');
        at += bytesRead;
        yield buffer.subarray(0, bytesRead);
      }
    },
  };
}
