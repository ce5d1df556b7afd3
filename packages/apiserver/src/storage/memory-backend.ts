/** The backend of tests, demos and browsers: the same log, kept in memory. Nothing outlives the page or process. */
import { type Backend, type Opened, type Row, StorageError } from './backend.ts';

/** Rows handed over at a time when the log is read. */
const CHUNK = 1000;

/**
 * Makes a memory backend. Closing and opening it again keeps the rows, as a file would, and raises the epoch; opening
 * it a second time while it is open is refused with 'in-use'.
 */
export function createMemoryBackend(): Backend {
  /** Ascending by revision: rows are only ever added at the end, so the Map's own order is the log's. */
  const log = new Map<number, Row>();
  let epoch = 0;
  let last = 0;
  let compacted = 0;
  let open = false;

  const assertOpen = (): void => {
    if (!open) throw new StorageError('poisoned', 'cannot use the store: it is closed');
  };

  async function* rows(): AsyncGenerator<readonly Row[]> {
    const all = [...log.values()];
    for (let i = 0; i < all.length; i += CHUNK) yield all.slice(i, i + CHUNK);
  }

  return {
    async open(signal): Promise<Opened> {
      signal.throwIfAborted();
      if (open) throw new StorageError('in-use', 'cannot open the store: it is open already');
      open = true;
      epoch++;
      return { epoch, revision: last, compacted, incomplete: 0, rows: rows(), corrupt: [], hole: 0 };
    },
    async commit(batch) {
      assertOpen();
      last = lastInOrder(batch, last);
      for (const row of batch) log.set(row.revision, row);
    },
    async compact(revision) {
      assertOpen();
      const upTo = Math.min(revision, last);
      if (upTo <= compacted) return;
      for (const row of log.values()) {
        if (row.revision > upTo) break;
        if (row.previous !== undefined) log.delete(row.previous);
        if (row.value === undefined) log.delete(row.revision);
      }
      compacted = upTo;
    },
    readValue(revision) {
      assertOpen();
      return log.get(revision)?.value;
    },
    diskState: () => 'ok',
    async close() {
      open = false;
    },
  };
}

/** The last revision of a batch that follows `last`. One out of order is a bug of the caller; it is refused whole. */
export function lastInOrder(batch: readonly Row[], last: number): number {
  return batch.reduce((previous, { revision }) => {
    if (revision <= previous)
      throw new RangeError(`Cannot commit revision ${revision}: it does not follow ${previous}`);
    return revision;
  }, last);
}
