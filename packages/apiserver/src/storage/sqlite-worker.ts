/**
 * The worker thread that owns the SQLite file: opening, the lock against a second process, and one message loop. It
 * answers requests in the order they came; compaction runs in slices between them.
 */
import { chmodSync, closeSync, existsSync, fsyncSync, mkdirSync, openSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { parentPort, workerData } from 'node:worker_threads';
import { crc32 } from 'node:zlib';
import { giveMemoryBack } from '@coracle/runtime/process/give-memory-back';
import { PASSING_FAILURES, StorageError, type StorageFailure } from './backend.ts';
import { packedSize, packRows, unpackRows } from './row-codec.ts';
import { type Begun, type LogChunk, prepareDatabase, SqliteLog } from './sqlite-log.ts';
import { toStorageError } from './storage-failure.ts';
import { LOCK_FILE, takeStoreLock } from './store-lock.ts';

export interface WorkerOptions {
  readonly directory: string;
  readonly pid: number;
  /** When this opening began, as text: named to whoever is refused. */
  readonly since: string;
  /** Milliseconds that a commit waits for another program's lock (a person's sqlite3 shell) before it gives up. */
  readonly patience: number;
}

/** Main thread to worker. `generation` rises with every failure the main thread has heard of. */
export type Request =
  | { readonly id: number; readonly type: 'open' }
  /** `room` is memory for the chunk, used if it suffices. */
  | { readonly id: number; readonly type: 'next'; readonly room?: ArrayBuffer }
  | { readonly id: number; readonly type: 'compact'; readonly revision: number }
  | { readonly id: number; readonly type: 'close' }
  | {
      readonly id: number;
      readonly type: 'commit';
      readonly generation: number;
      readonly count: number;
      readonly buffer: ArrayBuffer;
    };

export interface OpenAnswer extends Begun {
  readonly readOnly: boolean;
  /** True when others than the owner may read or list the directory. */
  readonly exposed: boolean;
}
export interface ChunkAnswer extends Omit<LogChunk, 'rows'> {
  readonly count: number;
  readonly buffer: ArrayBuffer;
}
/** Worker to main thread. */
export type Answer =
  | { readonly id: number; readonly ok: true; readonly value?: OpenAnswer | ChunkAnswer; readonly spare?: ArrayBuffer }
  | {
      readonly id: number;
      readonly ok: false;
      readonly kind: StorageFailure;
      readonly message: string;
      readonly poisoned: boolean;
    };

/** The write-ahead log is copied back into the file when about this much was added to it. */
const CHECKPOINT_BYTES = 4 * 1024 * 1024;
/** The least that a commit adds to it. */
const PAGE_BYTES = 8192;
/** Memory for a chunk of the log is a multiple of this, so that it does for the next chunks as well. */
const ROOM_STEP = 512 * 1024;
/** Most slices of vacuum in one compaction: 128 pages of 8 KiB each. */
const VACUUM_SLICES = 256;

const options = workerData as WorkerOptions;
const port = parentPort!;
const file = join(options.directory, 'store.db');
const lockFile = join(options.directory, LOCK_FILE);

let db: DatabaseSync | undefined;
let lock: { close(): void } | undefined;
let log: SqliteLog | undefined;
let readOnly = false;
let unsaved = 0;
/** Commits of this generation or an older one are refused: one before them failed. */
let failed: { generation: number; error: StorageError } | undefined;
let poisoned: StorageError | undefined;
let closing = false;

port.on('message', (request: Request) => {
  try {
    handle(request);
  } catch (error) {
    refuse(request.id, error);
  }
});

function handle(request: Request): void {
  switch (request.type) {
    case 'open':
      answer(request.id, open());
      return;
    case 'next': {
      const { rows, ...rest } = opened().next();
      const size = packedSize(rows);
      const fits = request.room !== undefined && request.room.byteLength >= size;
      const buffer = packRows(rows, fits ? request.room : new ArrayBuffer(Math.ceil(size / ROOM_STEP) * ROOM_STEP));
      answer(request.id, { ...rest, count: rows.length, buffer }, [buffer]);
      // Every value that was read still lies here, and this thread does too little to ever collect it.
      if (rest.done) giveMemoryBack();
      return;
    }
    case 'commit':
      commit(request);
      return;
    case 'compact':
      compact(request.id, request.revision);
      return;
    case 'close':
      close();
      answer(request.id);
      return;
    default:
      request satisfies never;
  }
}

function answer(id: number, value?: OpenAnswer | ChunkAnswer, transfer: ArrayBuffer[] = []): void {
  port.postMessage({ id, ok: true, ...(value && { value }) } satisfies Answer, transfer);
}

function refuse(id: number, cause: unknown): void {
  const { kind, message } = toFailure(cause);
  port.postMessage({ id, ok: false, kind, message, poisoned: poisoned !== undefined } satisfies Answer);
}

function opened(): SqliteLog {
  if (!log) throw new StorageError('poisoned', 'cannot use the store: it is not open');
  return log;
}

// Opening ---------------------------------------------------------------------------------------------------------

function open(): OpenAnswer {
  try {
    createFiles();
    lock = takeStoreLock(options.directory, options);
    db = new DatabaseSync(file, { timeout: options.patience });
    prepareDatabase(db, file);
  } catch (error) {
    const failure = toFailure(error);
    db?.close();
    if (failure.kind !== 'read-only' || !existsSync(file)) {
      release();
      throw failure;
    }
    readOnly = true;
    db = openReadOnly();
  }
  log = new SqliteLog(db, crc32);
  const found = log.begin({ readOnly });
  return { ...found, readOnly, exposed: (statSync(options.directory).mode & 0o077) !== 0 };
}

/** Makes what is missing, with the modes it must have: SQLite gives its own files the mode of the database. */
function createFiles(): void {
  const directory = resolve(options.directory);
  const firstMade = mkdirSync(directory, { recursive: true, mode: 0o700 });
  for (const path of [lockFile, file]) {
    closeSync(openSync(path, 'a', 0o600));
    chmodSync(path, 0o600);
  }
  // Their names must survive a power cut as well as their contents: those of the files, and of every directory made.
  const top = firstMade === undefined ? directory : dirname(firstMade);
  for (let path = directory; ; path = dirname(path)) {
    syncDirectory(path);
    if (path === top || path === dirname(path)) return;
  }
}

function syncDirectory(path: string): void {
  const handle = openSync(path, 'r');
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

/** On a file system that takes no writes. SQLite needs the shared-memory file of a log that was not folded back. */
function openReadOnly(): DatabaseSync {
  const wal = `${file}-wal`;
  const folded = !existsSync(wal) || statSync(wal).size === 0;
  const url = pathToFileURL(file);
  url.searchParams.set(folded ? 'immutable' : 'mode', folded ? '1' : 'ro');
  return new DatabaseSync(url, { readOnly: true });
}

// Writing ---------------------------------------------------------------------------------------------------------

function refuseUnlessWritable(act: 'write' | 'compact'): void {
  if (poisoned) throw poisoned;
  if (readOnly)
    throw new StorageError('read-only', `cannot ${act}: the file system of ${options.directory} is read-only`);
}

function commit(request: Extract<Request, { type: 'commit' }>): void {
  refuseUnlessWritable('write');
  if (failed && request.generation <= failed.generation) throw failed.error;
  try {
    const rows = unpackRows(request.buffer, request.count);
    opened().append(rows);
    unsaved += PAGE_BYTES;
    for (const row of rows) unsaved += row.value?.byteLength ?? 0;
  } catch (error) {
    const failure = toFailure(error);
    failed = { generation: request.generation, error: failure };
    poisonUnlessClean(failure);
    throw failure;
  }
  // The memory goes back for the next batch: fresh pages for each cost more than the copying.
  const spare = request.buffer;
  port.postMessage({ id: request.id, ok: true, spare } satisfies Answer, [spare]);
  checkpointWhenDue();
}

/** Only failures that SQLite rolls back before anything reached the file leave the store usable. */
function poisonUnlessClean(failure: StorageError): void {
  if (!PASSING_FAILURES.has(failure.kind)) poisoned ??= failure;
  else if (db?.isTransaction) poisoned = failure;
}

/** Copies the write-ahead log back after the answer has gone out, so that no writer waits for more than one of these. */
function checkpointWhenDue(): void {
  if (unsaved < CHECKPOINT_BYTES) return;
  unsaved = 0;
  try {
    db!.prepare('PRAGMA wal_checkpoint(PASSIVE)').get();
  } catch (error) {
    const failure = toFailure(error);
    // A full disk may stop this: the log then grows where it can, and the next commit tells. Try again soon.
    unsaved = CHECKPOINT_BYTES / 2;
    poisonUnlessClean(failure);
  }
}

function compact(id: number, revision: number): void {
  refuseUnlessWritable('compact');
  let vacuums = 0;
  let swept = false;
  const slice = (): void => {
    try {
      if (closing) throw new StorageError('poisoned', 'cannot compact: the store is closing');
      if (poisoned) throw poisoned;
      if (!swept) swept = opened().compactSlice(revision);
      else if (opened().vacuumSlice() || ++vacuums >= VACUUM_SLICES) {
        answer(id);
        return;
      }
      unsaved += CHECKPOINT_BYTES / 16;
      checkpointWhenDue();
      // Lets the commits that arrived meanwhile go first.
      setImmediate(slice);
    } catch (error) {
      const failure = toFailure(error);
      if (!closing) poisonUnlessClean(failure);
      refuse(id, failure);
    }
  };
  slice();
}

function close(): void {
  closing = true;
  if (db && !readOnly && !poisoned) db.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get();
  release();
}

function release(): void {
  if (db?.isOpen) db.close();
  lock?.close();
  db = undefined;
  lock = undefined;
  log = undefined;
}

const toFailure = (error: unknown): StorageError => toStorageError(error, file);
