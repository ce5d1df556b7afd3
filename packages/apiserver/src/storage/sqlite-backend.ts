/**
 * The durable backend: one SQLite file, written by a worker thread. This side packs batches, keeps their order, watches
 * the free space and turns the worker's answers into promises. Of the file it only reads single rows again, over a
 * connection of its own.
 */
import { statfsSync } from 'node:fs';
import { getCompileCacheDir } from 'node:module';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { Worker } from 'node:worker_threads';
import { crc32 } from 'node:zlib';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { Logger } from '@coracle/runtime/log/log';
import { type Backend, type DiskNeed, type DiskState, type Opened, type Row, StorageError } from './backend.ts';
import { type DiskSpace, missingSpace, nextDiskState } from './disk-state.ts';
import { lastInOrder } from './memory-backend.ts';
import { packedSize, packRows, unpackRows } from './row-codec.ts';
import { createRowReader } from './sqlite-log.ts';
import type { Answer, ChunkAnswer, OpenAnswer, Request, WorkerOptions } from './sqlite-worker.ts';

export interface SqliteBackendOptions {
  /** Holds `store.db` and its companions; made with mode 0700 when missing. One process at a time. */
  readonly directory: string;
  readonly clock: Clock;
  readonly log: Logger;
  /** Free and total bytes of the file system of `directory`; statfs by default. */
  readonly diskSpace?: (directory: string) => DiskSpace;
  /** Milliseconds that a commit waits for another program that locks the file; 5000 by default. */
  readonly patience?: number;
}

/** How old the free-space figure may be, in milliseconds. */
const DISK_STATE_AGE = 1000;
/** Batch memory kept for reuse: so many buffers of at most so many bytes; and the least one that is made. */
const MAX_SPARE = 4;
const MAX_ROOM = 1024 * 1024;
const MIN_ROOM = 256 * 1024;

type Unnumbered<T> = T extends unknown ? Omit<T, 'id'> : never;

/** Makes a SQLite backend; nothing is touched before `open`. */
export const createSqliteBackend = (options: SqliteBackendOptions): Backend => new SqliteBackend(options);

class SqliteBackend implements Backend {
  readonly #options: SqliteBackendOptions;
  readonly #waiting = new Map<number, PromiseWithResolvers<OpenAnswer | ChunkAnswer | undefined>>();
  #worker: Worker | undefined;
  #nextId = 1;
  #generation = 0;
  #lastRevision = 0;
  readonly #spare: ArrayBuffer[] = [];
  #poison: StorageError | undefined = new StorageError('poisoned', 'cannot use the store: it is not open');
  #readOnly = false;
  #disk: DiskState = 'ok';
  #diskReadAt = Number.NEGATIVE_INFINITY;
  #space: DiskSpace | undefined;
  /** Opened when the first row is read again. */
  #reader: ReturnType<typeof openReader> | undefined;

  constructor(options: SqliteBackendOptions) {
    this.#options = options;
  }

  async open(signal: AbortSignal): Promise<Opened> {
    signal.throwIfAborted();
    if (this.#worker) throw new StorageError('in-use', 'cannot open the store: it is open already');
    const { directory, clock, log, patience = 5000 } = this.#options;
    this.#start({ directory, pid: process.pid, since: new Date(clock.now()).toISOString(), patience });
    const abort = (): void => {
      void this.#stop(new StorageError('poisoned', 'cannot open the store: interrupted'));
    };
    signal.addEventListener('abort', abort, { once: true });
    let found: OpenAnswer;
    try {
      found = (await this.#ask({ type: 'open' })) as OpenAnswer;
    } catch (error) {
      await this.#stop(error as StorageError);
      signal.throwIfAborted();
      throw error;
    } finally {
      signal.removeEventListener('abort', abort);
    }
    const { readOnly, exposed, ...begun } = found;
    this.#lastRevision = begun.revision;
    this.#readOnly = readOnly;
    if (exposed) log.warn('state directory is readable by others', { directory, advice: 'chmod 700' });
    if (readOnly) log.error('file system is read-only, no write will be taken', { directory });
    const reading = { corrupt: [] as readonly string[], hole: 0 };
    return {
      ...begun,
      rows: this.#rows(signal, reading),
      get corrupt() {
        return reading.corrupt;
      },
      get hole() {
        return reading.hole;
      },
    };
  }

  async *#rows(
    signal: AbortSignal,
    reading: { corrupt: readonly string[]; hole: number },
  ): AsyncGenerator<readonly Row[]> {
    // The memory of the chunk before the last: fresh memory for each would make the collector run all the time.
    let room: ArrayBuffer | undefined;
    const read = (): Promise<ChunkAnswer> => {
      const asked = this.#ask({ type: 'next', ...(room && { room }) }, room ? [room] : []) as Promise<ChunkAnswer>;
      room = undefined;
      // Whoever stops reading does not hear of a failure of the chunk that was asked for ahead.
      asked.catch(() => {});
      return asked;
    };
    let next = read();
    for (let done = false; !done; ) {
      signal.throwIfAborted();
      const chunk = await next;
      // One ahead: the worker reads it while this thread takes in the last one.
      if (!chunk.done) next = read();
      reading.corrupt = chunk.corrupt;
      reading.hole = chunk.hole;
      done = chunk.done;
      if (chunk.count > 0) yield unpackRows(chunk.buffer, chunk.count);
      room = chunk.buffer;
    }
  }

  async commit(rows: readonly Row[]): Promise<void> {
    if (this.#poison) throw this.#poison;
    this.#lastRevision = lastInOrder(rows, this.#lastRevision);
    if (rows.length === 0) return;
    const buffer = packRows(rows, this.#room(packedSize(rows)));
    const generation = this.#generation;
    try {
      await this.#ask({ type: 'commit', generation, count: rows.length, buffer }, [buffer]);
    } catch (error) {
      // Commits already under way carry the old generation and fail with this one; later ones stand on their own.
      if (generation === this.#generation) this.#generation++;
      throw error;
    }
  }

  async compact(revision: number): Promise<void> {
    if (this.#poison) throw this.#poison;
    await this.#ask({ type: 'compact', revision });
  }

  readValue(revision: number): Uint8Array | undefined {
    if (!this.#worker) throw new StorageError('poisoned', 'cannot use the store: it is closed');
    try {
      this.#reader ??= openReader(this.#options.directory);
      return this.#reader.read(revision);
    } catch (error) {
      throw error instanceof StorageError ? error : new StorageError('io', (error as Error).message, { cause: error });
    }
  }

  diskState(): DiskState {
    if (this.#readOnly) return 'read-only';
    const now = this.#options.clock.monotonic();
    if (now - this.#diskReadAt < DISK_STATE_AGE) return this.#disk;
    this.#diskReadAt = now;
    const { directory, diskSpace = statfsSpace, log } = this.#options;
    try {
      const space = diskSpace(directory);
      const next = nextDiskState(this.#disk, space);
      if (next !== this.#disk) log.warn('disk state changed', { from: this.#disk, to: next, freeBytes: space.free });
      this.#disk = next;
      this.#space = space;
    } catch (error) {
      log.warn('cannot read the free disk space', { directory, error: String(error) });
    }
    return this.#disk;
  }

  diskNeed(): DiskNeed | undefined {
    if (!this.#space || this.#disk === 'ok') return undefined;
    return { directory: this.#options.directory, bytes: missingSpace(this.#space) };
  }

  async close(): Promise<void> {
    if (!this.#worker) return;
    const closed = new StorageError('poisoned', 'cannot use the store: it is closed');
    this.#poison = closed;
    this.#reader?.db.close();
    this.#reader = undefined;
    try {
      await this.#ask({ type: 'close' });
    } catch (error) {
      this.#options.log.warn('store did not close cleanly', { error: (error as Error).message });
    }
    await this.#stop(closed);
  }

  #start(workerData: WorkerOptions): void {
    // Beside this file, and compiled or not as this file is.
    const url = new URL(import.meta.url.endsWith('.ts') ? './sqlite-worker.ts' : './sqlite-worker.js', import.meta.url);
    const worker = new Worker(url, {
      workerData,
      name: 'store',
      resourceLimits: { maxYoungGenerationSizeMb: 8 },
      env: compileCache(),
      execArgv: ['--disable-warning=ExperimentalWarning'],
    });
    worker.on('message', (answer: Answer) => this.#receive(answer));
    worker.on('error', (error) => {
      if (worker === this.#worker) this.#fail(new StorageError('io', `the storage worker crashed: ${String(error)}`));
    });
    worker.on('exit', (code) => {
      if (worker === this.#worker)
        this.#fail(new StorageError('poisoned', `the storage worker ended with code ${code}`));
    });
    this.#worker = worker;
    this.#poison = undefined;
    this.#generation = 0;
  }

  #ask(request: Unnumbered<Request>, transfer: ArrayBuffer[] = []): Promise<OpenAnswer | ChunkAnswer | undefined> {
    const worker = this.#worker;
    if (!worker) return Promise.reject(this.#poison ?? new StorageError('poisoned', 'cannot use the store: not open'));
    const id = this.#nextId++;
    const waiter = Promise.withResolvers<OpenAnswer | ChunkAnswer | undefined>();
    this.#waiting.set(id, waiter);
    worker.postMessage({ ...request, id }, transfer);
    return waiter.promise;
  }

  /** Memory for one batch: what came back from an earlier one, if it is large enough. */
  #room(size: number): ArrayBuffer {
    const fits = this.#spare.findIndex((buffer) => buffer.byteLength >= size);
    return fits >= 0 ? this.#spare.splice(fits, 1)[0]! : new ArrayBuffer(Math.max(size, MIN_ROOM));
  }

  #receive(answer: Answer): void {
    const spare = answer.ok ? answer.spare : undefined;
    if (spare && spare.byteLength <= MAX_ROOM && this.#spare.length < MAX_SPARE) this.#spare.push(spare);
    const waiter = this.#waiting.get(answer.id);
    if (!waiter) return;
    this.#waiting.delete(answer.id);
    if (answer.ok) {
      waiter.resolve(answer.value);
      return;
    }
    if (answer.poisoned) {
      this.#poison ??= new StorageError(
        'poisoned',
        `the store takes no more writes since one failed: ${answer.message}`,
      );
    }
    waiter.reject(new StorageError(answer.kind, answer.message));
  }

  #fail(error: StorageError): void {
    this.#poison ??= error;
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const { reject } of waiting) reject(error);
  }

  async #stop(error: StorageError): Promise<void> {
    const worker = this.#worker;
    this.#worker = undefined;
    this.#fail(error);
    await worker?.terminate();
  }
}

function openReader(directory: string) {
  const db = new DatabaseSync(join(directory, 'store.db'), { readOnly: true, timeout: 1000 });
  return { db, read: createRowReader(db, crc32) };
}

/** A worker has a compile cache of its own, and without one it loads a TypeScript compiler to read its three files. */
function compileCache(): { NODE_COMPILE_CACHE?: string } {
  const directory = getCompileCacheDir();
  // What Node tells is the part for this version of Node, below the directory it was given.
  return directory === undefined ? {} : { NODE_COMPILE_CACHE: dirname(directory) };
}

function statfsSpace(directory: string): DiskSpace {
  const { bavail, blocks, bsize } = statfsSync(directory);
  return { free: bavail * bsize, total: blocks * bsize };
}
