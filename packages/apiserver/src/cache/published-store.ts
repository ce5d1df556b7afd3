/**
 * The store at work. A write walks: decide (against the newest decided state) > queue > commit (the backend makes the
 * batch durable) > publish (index, history, watches) > answer. Nothing but `peek` and `write`'s decider ever sees a
 * state that is not durable.
 */

import { type ApiError, expired, tooLargeResourceVersion } from '@coracle/apimachinery/meta/status';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { Logger } from '@coracle/runtime/log/log';
import type { Backend } from '../storage/backend.ts';
import { CommitQueue, type PendingWrite } from './commit-queue.ts';
import { type Compactor, startCompactor } from './compactor.ts';
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
  readonly compactionInterval: number;
  /** Bounds of the bytes held; parts left out take their defaults. */
  readonly byteLimits?: Partial<ByteLimits> | undefined;
  readonly limitsAfter?: Promise<void> | undefined;
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
  readonly #backend: Backend;
  readonly #log: Logger;
  readonly #clock: Clock;
  readonly #history: History;
  readonly #memory: ObjectMemory;
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
  readonly #waiters = new Set<{ readonly revision: number; readonly resolve: () => void }>();
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
    this.#backend = options.backend;
    this.#log = options.log;
    this.#clock = options.clock;
    this.#history = options.history;
    this.#memory = options.memory;
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
    this.#views = new PastViews(this.#history);
    this.#hub = new WatchHub(this.#history, this.#log, () => this.#revision);
    this.#queue = new CommitQueue({
      commit: (rows) => this.#backend.commit(rows),
      publish: (batch) => this.#publish(batch),
      onFailure: (error, failed) => this.#onFailure(error, failed),
    });
    this.#compactor = startCompactor({
      clock: this.#clock,
      log: this.#log,
      interval: options.compactionInterval,
      revision: () => this.#revision,
      forget: (revision) => {
        this.#history.forget(revision);
        this.#views.prune();
      },
      compact: async (revision) => {
        await this.#memory.disk?.held.compacting(revision);
        await this.#backend.compact(revision);
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
    return this.#indexes.get(key.prefix)?.get(indexKey(key));
  }

  peek(key: StoreKey): StoredObject | undefined {
    return this.#newest({ ...key, key: indexKey(key) });
  }

  settled(key: StoreKey): Promise<boolean> | undefined {
    const pending = this.#decided.get(rowKey({ ...key, key: indexKey(key) }));
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
    if (limit === 0 || items.length < limit || !last) return { items, revision, next: undefined, remaining: undefined };
    const rest = { from: `${last.key}\0`, to: range.to };
    const remaining = view ? view.count(index, rest) : index.countRange(rest.from, rest.to);
    return remaining > 0
      ? { items, revision, next: last.key, remaining }
      : { items, revision, next: undefined, remaining: undefined };
  }

  watch(prefix: string, from: number, listener: WatchListener): StoreWatch {
    const { floor } = this.#history;
    if (from < floor) throw expired(`too old resource version: ${from} (${floor})`);
    return this.#hub.start(prefix, from, listener);
  }

  observe(prefix: string, observer: StoreObserver): { stop(): void } {
    return this.#observers.add(prefix, observer);
  }

  waitFor(revision: number, signal: AbortSignal): Promise<void> {
    if (revision <= this.#revision) return Promise.resolve();
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      const abort = (): void => {
        this.#waiters.delete(waiter);
        reject(signal.reason);
      };
      const waiter = {
        revision,
        resolve: () => {
          signal.removeEventListener('abort', abort);
          resolve();
        },
      };
      signal.addEventListener('abort', abort, { once: true });
      this.#waiters.add(waiter);
    });
  }

  // Writing --------------------------------------------------------------------------------------------------------

  write(key: StoreKey, decide: (current: StoredObject | undefined) => Decision): Promise<StoredObject | undefined> {
    return this.#write(key, decide, undefined);
  }

  async writeTogether(first: StoreWrite, others: () => readonly StoreWrite[]): Promise<StoredObject | undefined> {
    const group: WriteGroup = { begun: false };
    const writes: Promise<unknown>[] = [];
    let main: Promise<StoredObject | undefined> | undefined;
    this.#queue.together(() => {
      main = this.#write(first.key, first.decide, group);
      if (!group.begun) return;
      for (const { key, decide } of others()) writes.push(this.#write(key, decide, group).catch(() => {}));
    });
    const stored = await main;
    await Promise.all(writes);
    return stored;
  }

  #write(
    key: StoreKey,
    decide: (current: StoredObject | undefined) => Decision,
    group: WriteGroup | undefined,
  ): Promise<StoredObject | undefined> {
    return new Promise((resolve, reject) => {
      // Whatever is thrown in here rejects the promise: nothing was written then.
      const refusal = this.#refusal();
      if (refusal) throw refusal;
      const place: Place = { prefix: key.prefix, namespace: key.namespace, name: key.name, key: indexKey(key) };
      const current = this.#newest(place);
      const decision = decide(current);
      switch (decision.type) {
        case 'keep': {
          const pending = this.#decided.get(rowKey(place));
          if (pending) pending.followers.push({ resolve: () => resolve(current), reject });
          else resolve(current);
          return;
        }
        case 'put':
          return this.#decide(current ?? place, {
            current,
            decision,
            deletes: false,
            group,
            resolve,
            reject,
          });
        case 'delete':
          // What is not there needs no tombstone.
          if (!current) return resolve(undefined);
          return this.#decide(current, { current, decision, deletes: true, group, resolve, reject });
        default:
          return decision satisfies never;
      }
    });
  }

  #decide(
    place: Place,
    write: {
      readonly current: Stored | undefined;
      readonly decision: Exclude<Decision, { readonly type: 'keep' }>;
      readonly deletes: boolean;
      readonly group: WriteGroup | undefined;
      readonly resolve: (stored: StoredObject) => void;
      readonly reject: (error: unknown) => void;
    },
  ): void {
    const { current, decision, deletes, group, resolve, reject } = write;
    // There is room for all of a group, which is a handful, or for none of it.
    if (!group?.begun) {
      const refusal = diskRefusal(this.#backend, current === undefined);
      if (refusal) throw refusal;
      if (this.#queue.full) throw tooManyWrites(this.#queue.size);
    }
    const revision = this.#lastDecided + 1;
    const shown = stampObject(place, revision, decision, this.#memory);
    const growth = (deletes ? 0 : shown.size) - (current?.size ?? 0);
    const isFree = group?.begun || !this.#isLimited;
    const tooMuch = isFree ? undefined : this.#bytes.refusal(place.namespace, growth, current === undefined);
    if (tooMuch) throw tooMuch;
    // Taken only now: an object that cannot be serialised costs no revision.
    this.#lastDecided = revision;
    const created = current === undefined;
    const followers: DecidedWrite['followers'] = [];
    const decided: DecidedWrite = {
      row: {
        revision,
        key: rowKey(place),
        value: deletes ? undefined : shown.bytes,
        created,
        ...(current && { previous: current.revision }),
      },
      change: {
        type: deletes ? 'DELETED' : created ? 'ADDED' : 'MODIFIED',
        revision,
        current: shown,
        previous: current,
      },
      state: deletes ? undefined : shown,
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
    const now = this.#clock.monotonic();
    const changes = new Map<string, Change[]>();
    for (const { change, state } of batch) {
      const current = change.current as Stored;
      const index = indexOf(this.#indexes, current.prefix);
      (change.previous as Stored | undefined)?.superseded(change.revision);
      if (state) index.set(state);
      else index.delete(current.key);
      this.#superseded += change.previous?.size ?? 0;
      this.#history.append(change, now);
      const ofPrefix = changes.get(current.prefix);
      if (ofPrefix) ofPrefix.push(change);
      else changes.set(current.prefix, [change]);
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
    for (const waiter of this.#waiters) {
      if (waiter.revision > this.#revision) continue;
      this.#waiters.delete(waiter);
      waiter.resolve();
    }
    if (this.#superseded < HURRY_BYTES) return;
    this.#superseded = 0;
    this.#compactor.hurry(this.#history.floor);
  }

  #onFailure(error: unknown, failed: readonly DecidedWrite[]): { reason: unknown; fatal: boolean } {
    const reason = commitFailure(error, this.#backend.diskNeed?.());
    const fatal = isFatal(error);
    this.#failedWrites += failed.length;
    this.#log.error('commit failed', { fatal, writes: failed.length, error: String(error) });
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
      heldBytes: this.#memory.disk?.held.bytes ?? 0,
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

const indexKey = (key: { readonly namespace: string; readonly name: string }): string => `${key.namespace}/${key.name}`;

/** The range of keys that a list walks: '0' is the character after '/'. */
function keyRange({ namespace, after }: ListOptions): KeyRange {
  const first = namespace === undefined ? '' : `${namespace}/`;
  const next = after === undefined || after < first ? first : `${after}\0`;
  return { from: next, to: namespace === undefined ? undefined : `${namespace}0` };
}
