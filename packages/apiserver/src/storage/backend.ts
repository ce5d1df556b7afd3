/**
 * The storage contract: an append-only revision log. One row per write, the row's revision is the resourceVersion; a
 * key's latest row is its state; a row without value is a tombstone. Two backends implement it (SQLite in a worker,
 * memory) and one suite (`backend.contract.ts`) runs on both.
 *
 * Guarantees: `commit` resolves only when every row of the batch is on stable storage; batches become durable whole
 * and in order. A commit that fails takes the commits sent after it, and not yet answered, down with it. After
 * 'no-space', 'read-only' and 'in-use' nothing of the batch was kept and a later commit may succeed; after any other
 * failure the state of the disk is unknown, so the backend is poisoned and refuses all further commits.
 */

/** One revision of one key. */
export interface Row {
  /** Global, strictly increasing, > 0. */
  readonly revision: number;
  /** `group/resource/namespace/name`; namespace is '' for cluster-scoped objects. */
  readonly key: string;
  /** The object's JSON, or undefined when this revision deletes the key. */
  readonly value: Uint8Array | undefined;
  /** True when this revision brought the key into being. */
  readonly created: boolean;
  /** Revision of the row this one supersedes; absent when there is none. Compaction forgets it once this row is old. */
  readonly previous?: number;
}

/** What `open` found. */
export interface Opened {
  /** This opening's epoch; a later opening of the same store fences this one off. */
  readonly epoch: number;
  /** No revision at or below this one may ever be given out again (covers reserved but unused revisions). */
  readonly revision: number;
  /** Revisions at or below this one are no longer in the log, only live rows are. */
  readonly compacted: number;
  /** Rows at or below this revision may be of a version that left out what Go writes as null; 0 when none are. */
  readonly incomplete: number;
  /**
   * Live rows and the retained log since `compacted`, in ascending revision order, tombstones included. The values of one
   * chunk are there until the next is asked for: their memory is used again.
   */
  readonly rows: AsyncIterable<readonly Row[]>;
  /**
   * Keys whose newest row did not match its checksum: quarantined, named in readyz, never dropped silently. Complete
   * once `rows` has been read to its end.
   */
  readonly corrupt: readonly string[];
  /** Highest revision of any row that did not match its checksum, 0 if none: the log cannot be replayed across it. */
  readonly hole: number;
}

export type DiskState = 'ok' | 'refuse-creates' | 'read-only';

/** Space that has to be freed before every write is taken again. */
export interface DiskNeed {
  readonly directory: string;
  readonly bytes: number;
}

export interface Backend {
  open(signal: AbortSignal): Promise<Opened>;
  /** Makes the rows durable. Rejects with StorageError; `kind` tells what to answer. */
  commit(rows: readonly Row[]): Promise<void>;
  /** Forgets superseded revisions and tombstones at or below `revision`. May fail and be tried again. */
  compact(revision: number): Promise<void>;
  /**
   * The value of a durable row, read at once; undefined when there is no such row (any more) or it deletes. Throws
   * StorageError: 'corrupt' when it does not match its checksum, 'io'. Absent where rows cannot be read again.
   */
  readValue?(revision: number): Uint8Array | undefined;
  /** Free-space state of the disk, refreshed at most once a second. */
  diskState(): DiskState;
  /** What is missing for `ok`, as it was seen then; absent where no disk is involved. */
  diskNeed?(): DiskNeed | undefined;
  close(): Promise<void>;
}

/** Why a write could not be made durable. */
export type StorageFailure = 'no-space' | 'read-only' | 'fenced' | 'poisoned' | 'io' | 'in-use' | 'corrupt';

/** After these nothing of a batch was kept, and a later one may succeed. */
export const PASSING_FAILURES: ReadonlySet<StorageFailure> = new Set(['no-space', 'read-only', 'in-use']);

export class StorageError extends Error {
  readonly kind: StorageFailure;
  constructor(kind: StorageFailure, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = 'StorageError';
    this.kind = kind;
  }
}
