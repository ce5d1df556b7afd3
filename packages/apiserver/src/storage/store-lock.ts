/**
 * The lock of a store: an open write transaction on a database of its own, `lock.db`. The kernel drops it with the
 * process, however that ends, and others can still read in it who holds it.
 */
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { StorageError } from './backend.ts';
import { toStorageError } from './storage-failure.ts';

/** Name of the file in the directory of a store. */
export const LOCK_FILE = 'lock.db';
/** How long a holder of the lock may take to write its name. */
const HOLDER_MS = 5000;
const HOLDER_POLL_MS = 20;

/** Who takes the lock: named to whoever is refused. */
export interface LockHolder {
  readonly pid: number;
  /** When, as text. */
  readonly since: string;
}

/** Takes the lock of `directory`; closing what it returns gives it back. Throws StorageError 'in-use' that names who has it. */
export function takeStoreLock(directory: string, { pid, since }: LockHolder): { close(): void } {
  const path = join(directory, LOCK_FILE);
  const lock = new DatabaseSync(path, { timeout: 0 });
  try {
    lock.exec('BEGIN IMMEDIATE');
    lock.exec('CREATE TABLE IF NOT EXISTS holder (pid INTEGER, since TEXT); DELETE FROM holder');
    lock.prepare('INSERT INTO holder VALUES (?, ?)').run(pid, since);
    lock.exec('COMMIT; BEGIN IMMEDIATE');
    return lock;
  } catch (error) {
    const failure = toStorageError(error, path);
    const taken =
      failure.kind === 'in-use'
        ? new StorageError('in-use', `cannot open ${directory}: ${holder(lock)}; stop it or choose another directory`)
        : failure;
    lock.close();
    throw taken;
  }
}

function holder(lock: DatabaseSync): string {
  for (let waited = 0; waited < HOLDER_MS; waited += HOLDER_POLL_MS) {
    try {
      const row = lock.prepare('SELECT pid, since FROM holder').get() as { pid: number; since: string } | undefined;
      if (row) return `it is in use by the process with pid ${row.pid}, since ${row.since}`;
    } catch {
      // The holder is writing its name this very moment.
    }
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, HOLDER_POLL_MS);
  }
  return 'it is in use by another process';
}
