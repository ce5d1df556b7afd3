/**
 * The storage contract: an append-only revision log. One row per write, the row's revision is the resourceVersion; a
 * key's latest row is its state; a row without value is a tombstone. Two backends implement it (SQLite in a worker,
 * memory) and one suite (`backend.contract.ts`) runs on both.
 *
 * Guarantees: `commit` resolves only when every row of the batch is on stable storage; batches become durable whole
 * and in order; after a commit has failed the backend is poisoned and refuses all further commits.
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
}

/** What `open` found. */
export interface Opened {
  /** This opening's epoch; a later opening of the same store fences this one off. */
  readonly epoch: number;
  /** No revision at or below this one may ever be given out again (covers reserved but unused revisions). */
  readonly revision: number;
  /** Revisions at or below this one are no longer in the log, only live rows are. */
  readonly compacted: number;
  /** Live rows and the retained log since `compacted`, in ascending revision order, tombstones included. */
  readonly rows: AsyncIterable<readonly Row[]>;
  /** Keys of rows whose checksum did not match: quarantined, named in readyz, never dropped silently. */
  readonly corrupt: readonly string[];
}

export type DiskState = 'ok' | 'refuse-creates' | 'read-only';

export interface Backend {
  open(signal: AbortSignal): Promise<Opened>;
  /** Makes the rows durable. Rejects with StorageError; `kind` tells what to answer. */
  commit(rows: readonly Row[]): Promise<void>;
  /** Forgets superseded revisions and tombstones at or below `revision`. May fail and be tried again. */
  compact(revision: number): Promise<void>;
  /** Free-space state of the disk, refreshed at most once a second. */
  diskState(): DiskState;
  /** Bytes on disk (0 for memory). */
  size(): Promise<number>;
  close(): Promise<void>;
}

/** Why a write could not be made durable. */
export type StorageFailure = 'no-space' | 'read-only' | 'fenced' | 'poisoned' | 'io' | 'in-use' | 'corrupt';

export class StorageError extends Error {
  readonly kind: StorageFailure;
  constructor(kind: StorageFailure, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = 'StorageError';
    this.kind = kind;
  }
}
