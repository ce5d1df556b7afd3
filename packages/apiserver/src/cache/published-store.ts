/**
 * The store at work. A write walks: decide (against the newest decided state) > queue > commit (the backend makes the
 * batch durable) > publish (index, history, watches) > answer. Nothing but `peek` and `write`'s decider ever sees a
 * state that is not durable.
 */

import { type ApiError, expired, tooLargeResourceVersion } from '@coracle/apimachinery/meta/status';
import type { Clock } from '@coracle/runtime/clock/clock';
import { getOrInsert } from '@coracle/runtime/collections/get-or-insert';
import type { Logger } from '@coracle/runtime/log/log';
import { abortable } from '@coracle/runtime/signal/abortable';
import type { Backend } from '../storage/backend.ts';
import { CommitQueue, type PendingWrite } from './commit-queue.ts';
import { COMPACTION_INTERVAL, type Compactor, startCompactor } from './compactor.ts';
import { commitFailure, diskRefusal, isFatal, tooManyWrites, unavailable } from './failures.ts';
import type { History } from './history.ts';
import { type ByteLimits, NamespaceBytes } from './namespace-bytes.ts';
import type {
  Change,
  Decision,
  Listed,
  ListOptions,
  ObjectStore,
  StoredObject,
  StoreKey,
  StoreObserver,
  StoreStats,
  StoreWatch,
  StoreWrite,
} from './object-store.ts';
import { OrderedIndex } from './ordered-index.ts';
import { type KeyRange, PastViews } from './past-view.ts';
import { type Indexes, indexOf, rowKey } from './store-load.ts';
import { type ObjectMemory, type Place, type Stored, stampObject } from './stored-object.ts';
import { WatchHub, type WatchListener } from './watch-hub.ts';
import { WriteObservers } from './write-observers.ts';

export interface PublishedStoreOptions {
  readonly backend: Backend;
  readonly log: Logger;
  readonly clock: Clock;
  readonly history: History;
  readonly memory: ObjectMemory;
  readonly indexes: Indexes;
  readonly revision: number;
  readonly corrupt: readonly string[];
  /** Milliseconds between compactions, which is also the history they leave. */
  readonly compactionInterval?: number;
  /** Bounds of the bytes that namespaces, and all of them, may hold; parts left out take their defaults. */
  readonly byteLimits?: Partial<ByteLimits>;
  /** Until it resolves nothing is refused for its bytes: what a start has to make is made, whatever is stored. */
  readonly limitsAfter?: Promise<void>;
}

/** A write that was decided: `change` is shown once it is durable. */
interface DecidedWrite extends PendingWrite {
  readonly change: Change;
  /** The key's state after this write, undefined when it deletes. */
  readonly state: Stored | undefined;
  /** Bytes by which its namespace grows. */
  readonly growth: number;
  /** `keep` decisions and refusals that were made on top of this write and are answered with it. */
  readonly followers: { resolve: () => void; reject: (error: unknown) => void }[];
}

/** Writes of one commit; `begun` once the first of them stands. */
interface WriteGroup {
  begun: boolean;
}

/** Bytes superseded in the log after which it is compacted without waiting for the interval. */
const HURRY_BYTES = 256 * 1024 * 1024;
const NO_OBJECTS: OrderedIndex<Stored> = new OrderedIndex();

export class PublishedStore implements ObjectStore {
  readonly #options: PublishedStoreOptions;
  readonly #backend: Backend;
  readonly #history: History;
  readonly #indexes: Indexes;
  readonly #views: PastViews;
  readonly #hub: WatchHub;
  readonly #queue: CommitQueue<DecidedWrite>;
  readonly #compactor: Compactor;
  readonly #bytes: NamespaceBytes;
  /** Whether what is too much is refused. */
  #isLimited: boolean;
  /** Newest decided write of each key that is not durable yet. Bounded by the queue. */
  readonly #decided = new Map<string, DecidedWrite>();
  readonly #observers = new WriteObservers();
  readonly #waiters = new Set<{ readonly revision: number; resolve(): void }>();
  /** Row keys whose newest row was damaged when the store was opened. */
  readonly #corrupt: Set<string>;
  #revision: number;
  #lastDecided: number;
  #fatal: ApiError | undefined;
  #closed = false;
  #superseded = 0;
  #writes = 0;
  #commits = 0;
  #failedWrites = 0;

  constructor(options: PublishedStoreOptions) {
    const { backend, log, clock, history, memory } = options;
    this.#options = options;
    this.#backend = backend;
    this.#history = history;
    this.#indexes = options.indexes;
    this.#revision = options.revision;
    this.#lastDecided = options.revision;
    this.#corrupt = new Set(options.corrupt);
    this.#isLimited = options.limitsAfter === undefined;
    void options.limitsAfter?.then(() => {
      this.#isLimited = true;
    });
    this.#bytes = new NamespaceBytes(
      options.byteLimits ?? {},
      (name) => this.get({ prefix: '/namespaces', namespace: '', name })?.metadata.annotations,
    );
    for (const index of this.#indexes.values())
      for (const some of index.range('', undefined))
        for (const { namespace, size } of some) this.#bytes.add(namespace, size);
    this.#views = new PastViews(history);
    this.#hub = new WatchHub(history, log, () => this.#revision);
    this.#queue = new CommitQueue({
      commit: (rows) => backend.commit(rows),
      publish: (batch) => this.#publish(batch),
      onFailure: (error, failed) => this.#onFailure(error, failed),
    });
    this.#compactor = startCompactor({
      clock,
      log,
      interval: options.compactionInterval ?? COMPACTION_INTERVAL,
      revision: () => this.#revision,
      forget: (revision) => {
        history.forget(revision);
        this.#views.prune();
      },
      compact: async (revision) => {
        await memory.disk?.held.compacting(revision);
        await backend.compact(revision);
      },
    });
  }

  // Reading --------------------------------------------------------------------------------------------------------

  revision(): number {
    return this.#revision;
  }

  compactedRevision(): number {
    return this.#history.floor;
  }

  get(key: StoreKey): StoredObject | undefined {
    return this.#indexes.get(key.prefix)?.get(placeOf(key).key);
  }

  peek(key: StoreKey): StoredObject | undefined {
    return this.#newest(placeOf(key));
  }

  settled(key: StoreKey): Promise<boolean> | undefined {
    const pending = this.#decided.get(rowKey(placeOf(key)));
    if (!pending) return undefined;
    return new Promise((resolve) => {
      pending.followers.push({ resolve: () => resolve(true), reject: () => resolve(false) });
    });
  }

  count(prefix: string): number {
    return this.#indexes.get(prefix)?.size ?? 0;
  }

  list(prefix: string, options: ListOptions = {}): Listed {
    const { limit = 0, match } = options;
    const revision = options.revision ?? this.#revision;
    if (revision > this.#revision) throw tooLargeResourceVersion(revision, this.#revision);
    if (revision < this.#history.floor) throw expired('The resourceVersion for the provided list is too old.');
    const range = keyRange(options);
    const index = this.#indexes.get(prefix) ?? NO_OBJECTS;
    const view = revision === this.#revision ? undefined : this.#views.at(prefix, revision, this.#revision);
    const items: Stored[] = [];
    collect: for (const some of view ? view.range(index, range) : index.range(range.from, range.to)) {
      for (const item of some) {
        if (match && !match(item)) continue;
        items.push(item);
        if (items.length === limit) break collect;
      }
    }
    const last = items.at(-1);
    const whole: Listed = { items, revision, next: undefined, remaining: undefined };
    if (limit === 0 || items.length < limit || !last) return whole;
    const rest = { from: `${last.key}\0`, to: range.to };
    const remaining = view ? view.count(index, rest) : index.countRange(rest.from, rest.to);
    return remaining > 0 ? { items, revision, next: last.key, remaining } : whole;
  }

  watch(prefix: string, from: number, listener: WatchListener): StoreWatch {
    const { floor } = this.#history;
    if (from < floor) throw expired(`too old resource version: ${from} (${floor})`);
    return this.#hub.start(prefix, from, listener);
  }

  observe(prefix: string, observer: StoreObserver): { stop(): void } {
    return this.#observers.add(prefix, observer);
  }

  async waitFor(revision: number, signal: AbortSignal): Promise<void> {
    if (revision <= this.#revision) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const waiter = { revision, resolve };
    this.#waiters.add(waiter);
    try {
      await abortable(promise, signal);
    } finally {
      this.#waiters.delete(waiter);
    }
  }

  // Writing --------------------------------------------------------------------------------------------------------

  write(key: StoreKey, decide: StoreWrite['decide']): Promise<StoredObject | undefined> {
    return this.#write({ key, decide });
  }

  async writeTogether(first: StoreWrite, others: () => readonly StoreWrite[]): Promise<StoredObject | undefined> {
    const group: WriteGroup = { begun: false };
    const writes: Promise<unknown>[] = [];
    let main: Promise<StoredObject | undefined> | undefined;
    this.#queue.together(() => {
      main = this.#write(first, group);
      if (!group.begun) return;
      for (const other of others()) writes.push(this.#write(other, group).catch(() => {}));
    });
    const stored = await main;
    await Promise.all(writes);
    return stored;
  }

  #write({ key, decide }: StoreWrite, group?: WriteGroup): Promise<StoredObject | undefined> {
    return new Promise((resolve, reject) => {
      // Whatever is thrown in here rejects the promise: nothing was written then.
      const refusal = this.#refusal();
      if (refusal) throw refusal;
      const place = placeOf(key);
      const current = this.#newest(place);
      const decision = decide(current);
      if (decision.type === 'keep') {
        const pending = this.#decided.get(rowKey(place));
        if (pending) pending.followers.push({ resolve: () => resolve(current), reject });
        else resolve(current);
        return;
      }
      // What is not there needs no tombstone.
      if (decision.type === 'delete' && !current) return resolve(undefined);
      this.#decide(current ?? place, { current, decision, group, resolve, reject });
    });
  }

  #decide(
    place: Place,
    write: {
      readonly current: Stored | undefined;
      readonly decision: Exclude<Decision, { readonly type: 'keep' }>;
      readonly group: WriteGroup | undefined;
      readonly resolve: (stored: StoredObject) => void;
      readonly reject: (error: unknown) => void;
    },
  ): void {
    const { current, decision, group, resolve, reject } = write;
    const created = current === undefined;
    // There is room for all of a group, which is a handful, or for none of it.
    if (!group?.begun) {
      const refusal = diskRefusal(this.#backend, created);
      if (refusal) throw refusal;
      if (this.#queue.full) throw tooManyWrites(this.#queue.size);
    }
    const revision = this.#lastDecided + 1;
    const shown = stampObject(place, revision, decision, this.#options.memory);
    const deletes = decision.type === 'delete';
    const state = deletes ? undefined : shown;
    const growth = (state?.size ?? 0) - (current?.size ?? 0);
    const isFree = group?.begun || !this.#isLimited;
    const tooMuch = isFree ? undefined : this.#bytes.refusal(place.namespace, growth, created);
    if (tooMuch) throw tooMuch;
    // Taken only now: an object that cannot be serialised costs no revision.
    this.#lastDecided = revision;
    const followers: DecidedWrite['followers'] = [];
    const decided: DecidedWrite = {
      row: {
        revision,
        key: rowKey(place),
        value: state?.bytes,
        created,
        ...(current && { previous: current.revision }),
      },
      change: {
        type: deletes ? 'DELETED' : created ? 'ADDED' : 'MODIFIED',
        revision,
        current: shown,
        previous: current,
      },
      state,
      group,
      growth,
      followers,
      durable: () => {
        resolve(shown);
        for (const follower of followers) follower.resolve();
      },
      failed: (error) => {
        reject(error);
        for (const follower of followers) follower.reject(error);
      },
    };
    this.#bytes.add(place.namespace, growth);
    this.#decided.set(decided.row.key, decided);
    this.#observers.decided(decided.change);
    this.#queue.push(decided);
    if (group) group.begun = true;
  }

  #newest(place: Place): Stored | undefined {
    if (this.#decided.size > 0) {
      const decided = this.#decided.get(rowKey(place));
      if (decided) return decided.state;
    }
    return this.#indexes.get(place.prefix)?.get(place.key);
  }

  #refusal(): ApiError | undefined {
    if (this.#closed) return unavailable('the server is stopping');
    return this.#fatal;
  }

  #publish(batch: readonly DecidedWrite[]): void {
    const now = this.#options.clock.monotonic();
    const changes = new Map<string, Change[]>();
    for (const { change, state } of batch) {
      const current = change.current as Stored;
      const index = indexOf(this.#indexes, current.prefix);
      (change.previous as Stored | undefined)?.superseded(change.revision);
      if (state) index.set(state);
      else index.delete(current.key);
      this.#superseded += change.previous?.size ?? 0;
      this.#history.append(change, now);
      getOrInsert(changes, current.prefix, () => []).push(change);
      this.#revision = change.revision;
    }
    for (const write of batch) {
      if (this.#decided.get(write.row.key) === write) this.#decided.delete(write.row.key);
      if (this.#corrupt.size > 0) this.#corrupt.delete(write.row.key);
    }
    this.#observers.settled(batch, true);
    this.#writes += batch.length;
    this.#commits++;
    this.#history.trim(now);
    this.#views.prune();
    this.#hub.publish(changes);
    // Who compares states has done so; the history holds the bytes of the superseded ones.
    for (const { change } of batch) (change.previous as Stored | undefined)?.forget();
    // Readers have their frames: from here on bytes may be left on the disk. Superseded within the batch: never.
    for (const { state } of batch) if (state && this.get(state) === state) state.published();
    for (const { revision, resolve } of this.#waiters) if (revision <= this.#revision) resolve();
    if (this.#superseded < HURRY_BYTES) return;
    this.#superseded = 0;
    this.#compactor.hurry(this.#history.floor);
  }

  #onFailure(error: unknown, failed: readonly DecidedWrite[]): { reason: unknown; fatal: boolean } {
    const reason = commitFailure(error, this.#backend.diskNeed?.());
    const fatal = isFatal(error);
    this.#failedWrites += failed.length;
    this.#options.log.error('commit failed', { fatal, writes: failed.length, error: String(error) });
    if (fatal) {
      this.#fatal ??= reason;
      this.#decided.clear();
    } else {
      for (const { row, change, growth } of failed) {
        this.#decided.delete(row.key);
        this.#bytes.add(change.current.namespace, -growth);
      }
    }
    this.#observers.settled(failed, false);
    return { reason, fatal };
  }

  // Health and end -------------------------------------------------------------------------------------------------

  fault(): string | undefined {
    if (this.#fatal) return this.#fatal.message;
    const disk = diskRefusal(this.#backend, true);
    if (disk) return disk.message;
    if (this.#corrupt.size === 0) return undefined;
    const named = [...this.#corrupt].slice(0, 10).join(', ');
    return `${this.#corrupt.size} objects were damaged on the disk and are shown in an older state or not at all; apply them again: ${named}`;
  }

  stats(): StoreStats {
    let objects = 0;
    for (const index of this.#indexes.values()) objects += index.size;
    return {
      objects,
      writes: this.#writes,
      commits: this.#commits,
      failedWrites: this.#failedWrites,
      queued: this.#queue.size,
      heldBytes: this.#options.memory.disk?.held.bytes ?? 0,
      historyBytes: this.#history.bytes,
      compactions: this.#compactor.done,
      failedCompactions: this.#compactor.failed,
    };
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.#queue.drained();
    this.#hub.stopAll();
    const compacted = this.#compactor.stop();
    await this.#backend.close();
    await compacted;
  }
}

const placeOf = ({ prefix, namespace, name }: StoreKey): Place => ({
  prefix,
  namespace,
  name,
  key: `${namespace}/${name}`,
});

/** The range of keys that a list walks: '0' is the character after '/'. */
function keyRange({ namespace, after }: ListOptions): KeyRange {
  const first = namespace === undefined ? '' : `${namespace}/`;
  const next = after === undefined || after < first ? first : `${after}\0`;
  return { from: next, to: namespace === undefined ? undefined : `${namespace}0` };
}
