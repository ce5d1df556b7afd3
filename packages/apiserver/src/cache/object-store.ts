/**
 * The published state: all objects, as deep-frozen JSON values with their bytes (in memory, or on the disk where they
 * are many or large), over a Backend that makes each write durable before anyone can see it. Writers decide against the newest decided state (durable or on its way);
 * readers and watchers see only what is durable.
 */
import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import type { Pause } from '@coracle/apimachinery/meta/pause';
import type { WrittenObject } from './written-object.ts';

/** One revision of one object. Immutable; shared by every reader. */
export interface StoredObject {
  /** Storage prefix, `group/resource`. */
  readonly prefix: string;
  readonly namespace: string;
  readonly name: string;
  readonly revision: number;
  /** Deep-frozen, `metadata.resourceVersion` set. */
  readonly object: Readonly<UnstructuredObject>;
  /** That of `object` but for managedFields, which can be most of it. Frozen. Does not parse the rest. */
  readonly metadata: Readonly<UnstructuredObject['metadata']>;
  /**
   * Parses a large object in pieces, so that `object` is there soon after; undefined when it is, or is parsed quickly. The
   * parsed form may be let go again at any time.
   */
  load(pause: Pause): Promise<void> | undefined;
  /** Lets the parsed object go; it is parsed again when somebody asks. */
  forget(): void;
  /** True while `object` is at hand without parsing. */
  readonly isParsed: boolean;
  /** Length of `bytes`, known without reading them. */
  readonly size: number;
  /** True while `bytes` are in memory: else they are read from the disk, in a millisecond or two for a large object. */
  readonly isHeld: boolean;
  /** JSON of `object`, begins with `{"kind":K,"apiVersion":V,` (see `headLength`); no trailing newline. */
  readonly bytes: Uint8Array;
  /** Bytes of the leading `{"kind":..,"apiVersion":..,` part: list items of built-in kinds are `{` + bytes.subarray(headLength). */
  readonly headLength: number;
}

/** One visible change. For DELETED `object` is the last state with the delete's resourceVersion. */
export interface Change {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly revision: number;
  readonly current: StoredObject;
  /** The state before this change, if there was one. */
  readonly previous: StoredObject | undefined;
}

/**
 * What a write wants. `object` is owned by the store afterwards (it is frozen); resourceVersion is set by the store. A
 * large one comes written (`WrittenObject`): the decision is a step of its own.
 */
export type Decision =
  | { readonly type: 'put'; readonly object: UnstructuredObject; readonly written?: WrittenObject }
  /** `object` = last state to show in the DELETED event (usually the current object, perhaps edited). */
  | { readonly type: 'delete'; readonly object: UnstructuredObject; readonly written?: WrittenObject }
  | { readonly type: 'keep' };

export interface StoreKey {
  readonly prefix: string;
  readonly namespace: string;
  readonly name: string;
}

/** A key and what becomes of it, decided against its newest decided state. */
export interface StoreWrite {
  readonly key: StoreKey;
  readonly decide: (current: StoredObject | undefined) => Decision;
}

export interface ListOptions {
  /** All namespaces when undefined. */
  readonly namespace?: string;
  /** Exact snapshot; newest published when undefined. */
  readonly revision?: number;
  /** Start strictly after this `namespace/name` (cluster-scoped: `/name`). */
  readonly after?: string;
  /** At most this many matching items; no bound when undefined. */
  readonly limit?: number;
  /** Keeps an item when true. */
  readonly match?: (item: StoredObject) => boolean;
}

export interface Listed {
  readonly items: readonly StoredObject[];
  /** The snapshot's revision. */
  readonly revision: number;
  /** `namespace/name` of the last item when more may follow, else undefined. */
  readonly next: string | undefined;
  /** Exact count of what follows the last item, counting without `match`; undefined when nothing follows. */
  readonly remaining: number | undefined;
}

/** A running watch. The listener is called in revision order, synchronously after publication, never after `stop`. */
export interface StoreWatch {
  /**
   * The revision up to which the listener has been notified of everything: the published one, also where that changed other
   * prefixes only, as soon as the retained log was notified (for bookmarks).
   */
  through(): number;
  stop(): void;
}

/**
 * Hears of the writes of a prefix as they are decided, so that what it keeps of them can be asked within the decision of
 * another write. It neither throws nor writes.
 */
export interface StoreObserver {
  /** Within the step that decided it: it is the newest decided state of its key. */
  decided(change: Change): void;
  /** It is durable, and about to be published; or it failed, and never was. */
  settled(change: Change, durable: boolean): void;
}

export interface ObjectStore {
  /** Newest published (durable) revision. */
  revision(): number;
  /** Oldest revision from which a watch can start / a list can be rebuilt. */
  compactedRevision(): number;
  /** Published state. */
  get(key: StoreKey): StoredObject | undefined;
  /** Newest decided state, durable or on its way: for optimistic writers only, never for an answer. */
  peek(key: StoreKey): StoredObject | undefined;
  /**
   * Undefined when the newest decided state of `key` is durable. Else resolves when the write that makes it is settled:
   * true = durable, false = it failed and never was. Never rejects.
   */
  settled(key: StoreKey): Promise<boolean> | undefined;
  /** Throws ApiError 410 Expired when `revision` is compacted. */
  list(prefix: string, options?: ListOptions): Listed;
  count(prefix: string): number;
  /**
   * Decides synchronously against the newest decided state and resolves when durable and published. Resolves to the
   * stored object ('put'), the last state ('delete'), or the unchanged current one ('keep', after it is durable).
   * `decide` may throw (ApiError): nothing is written and the promise rejects with it.
   * Rejects with ApiError 507/503 when the disk is full or the store is poisoned.
   */
  write(key: StoreKey, decide: (current: StoredObject | undefined) => Decision): Promise<StoredObject | undefined>;
  /**
   * As `write`, with others in the same commit: all become durable or none. `others` is called when the first has been
   * decided, and from then on nothing may refuse: what stands against the whole is for the first's `decide` to throw.
   * Resolves to the first when all are durable.
   */
  writeTogether(first: StoreWrite, others: () => readonly StoreWrite[]): Promise<StoredObject | undefined>;
  /**
   * Calls `listener` for every change of `prefix` after revision `from` (from the retained log, then live), in order,
   * without gap or duplicate. Batches: called once per commit with all its changes of this prefix.
   * The retained log is delivered right after this call has returned, never within it.
   * Throws ApiError 410 Expired ("too old resource version: N (M)") when `from` is compacted.
   */
  watch(prefix: string, from: number, listener: (changes: readonly Change[]) => void): StoreWatch;
  /** Calls the observer for every write of `prefix` decided from now on. The writes of other prefixes cost nothing. */
  observe(prefix: string, observer: StoreObserver): { stop(): void };
  /** Resolves when the published revision is at least `revision`; rejects with the signal's reason. */
  waitFor(revision: number, signal: AbortSignal): Promise<void>;
  /** Why the store is not fit to serve writes, for readyz; undefined when all is well. */
  fault(): string | undefined;
  /** Counters and sizes, for metrics. */
  stats(): StoreStats;
  close(): Promise<void>;
}

/** What the store has done since it was opened, and what it holds. */
export interface StoreStats {
  readonly objects: number;
  /** Writes made durable, commits that carried them, writes that failed on the disk. */
  readonly writes: number;
  readonly commits: number;
  readonly failedWrites: number;
  /** Writes decided and not yet durable. */
  readonly queued: number;
  /** Bytes of current objects in memory; the others are on the disk. */
  readonly heldBytes: number;
  /** Bytes of the superseded states that changes retained for watches and old lists hold. */
  readonly historyBytes: number;
  readonly compactions: number;
  readonly failedCompactions: number;
}
