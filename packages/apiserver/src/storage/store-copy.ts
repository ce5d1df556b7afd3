/**
 * A store as a file that somebody keeps: copied at one revision while its process writes on, looked through without a
 * change, and prepared for a life of its own. Readers of SQLite's write-ahead log hold nobody up.
 */
import { closeSync, fsyncSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { crc32 } from 'node:zlib';
import { type Row, StorageError } from './backend.ts';
import { prepareDatabase, SqliteLog } from './sqlite-log.ts';
import { toStorageError } from './storage-failure.ts';

/** What a copy holds. */
export interface StoreFacts {
  /** The newest revision in it. */
  readonly revision: number;
  readonly epoch: number;
  readonly rows: number;
  /** Keys whose newest row does not match its checksum. */
  readonly damaged: readonly string[];
}

export interface InspectOptions {
  /** Sees every row whose checksum is right, in ascending order; values are there until it returns. */
  readonly onRow?: (row: Row) => void;
  readonly signal: AbortSignal;
}

/** Milliseconds to wait for the moment in which another process opens or closes the file. */
const PATIENCE_MS = 5000;

/**
 * Writes the store of `directory` to `file`, which must not exist: one revision, whole, on stable storage. The store may
 * be in use. Throws StorageError.
 */
export function copyStore(directory: string, file: string): void {
  const source = join(directory, 'store.db');
  attempt(source, () => {
    const db = new DatabaseSync(source, { readOnly: true, timeout: PATIENCE_MS });
    try {
      // SQLite writes into an empty file as into none; so nobody else may read it from the start.
      closeSync(openSync(file, 'wx', 0o600));
      db.prepare('VACUUM INTO ?').run(file);
    } finally {
      db.close();
    }
    sync(file);
  });
}

/**
 * Looks through a copy that nobody writes: its structure, and the checksum of each row. Nothing is changed, and no file
 * appears beside it. Throws StorageError 'corrupt' when it is no store, or one that SQLite cannot read.
 */
export function inspectStore(file: string, { onRow, signal }: InspectOptions): StoreFacts {
  return attempt(file, () => {
    const url = pathToFileURL(file);
    url.searchParams.set('immutable', '1');
    const db = new DatabaseSync(url, { readOnly: true });
    try {
      if ((db.prepare('SELECT count(*) AS n FROM sqlite_schema').get() as { n: number }).n === 0)
        throw new StorageError('corrupt', `${file} holds nothing`);
      prepareDatabase(db, file, { readOnly: true });
      const found = (db.prepare('PRAGMA integrity_check(1)').get() as { integrity_check: string }).integrity_check;
      if (found !== 'ok') throw new StorageError('corrupt', `${file} is damaged: ${found}`);
      const log = new SqliteLog(db, crc32);
      const { epoch } = log.begin({ readOnly: true });
      let [rows, revision] = [0, 0];
      for (;;) {
        signal.throwIfAborted();
        const chunk = log.next();
        for (const row of chunk.rows) {
          rows++;
          revision = row.revision;
          onRow?.(row);
        }
        if (chunk.done) return { revision: Math.max(revision, chunk.hole), epoch, rows, damaged: chunk.corrupt };
      }
    } finally {
      db.close();
    }
  });
}

/**
 * Gives a copy a history of its own: revisions go on `gap` above all that the store has promised, and everything below is
 * forgotten, so that a client with a revision of the original, or of another copy, has to list anew (410).
 */
export function divideHistory(file: string, gap: number): void {
  attempt(file, () => {
    const db = new DatabaseSync(file);
    try {
      prepareDatabase(db, file);
      new SqliteLog(db, crc32).divide(gap);
      db.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get();
    } finally {
      db.close();
    }
    sync(file);
  });
}

function sync(file: string): void {
  const handle = openSync(file, 'r');
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

function attempt<T>(file: string, act: () => T): T {
  try {
    return act();
  } catch (error) {
    if (error instanceof Error && error.name === 'AbortError') throw error;
    throw toStorageError(error, file);
  }
}
