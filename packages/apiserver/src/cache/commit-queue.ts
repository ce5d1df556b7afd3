/**
 * Group commit: while a batch is on its way to the disk, what is decided meanwhile gathers for the next. A batch is
 * published whole or fails whole, and with it fails what was decided on top of it.
 */
import type { Row } from '../storage/backend.ts';

/** A decided write. */
export interface PendingWrite {
  readonly row: Row;
  /** Writes of one group become durable in one commit, or none of them does. They are pushed one after another. */
  readonly group?: object | undefined;
  /** Called in revision order once the batch is durable and published. */
  readonly durable: () => void;
  readonly failed: (error: unknown) => void;
}

/** Waiting writes (those under way not counted): beyond either bound writers are sent away. */
const MAX_QUEUED = 4096;
const MAX_QUEUED_BYTES = 64 * 1024 * 1024;
/** Commits under way at a time: the second is packed and sent while the first is at the disk, when it is worth it. */
const MAX_COMMITS = 2;
const WORTH_A_COMMIT = 16;
/** One commit: bounds how long the writes behind it wait. */
const MAX_BATCH = 1024;
const MAX_BATCH_BYTES = 8 * 1024 * 1024;

const bytesOf = ({ row }: PendingWrite): number => row.value?.byteLength ?? 0;

export interface CommitQueueOptions<W extends PendingWrite> {
  readonly commit: (rows: readonly Row[]) => Promise<void>;
  /** Makes a durable batch visible. */
  readonly publish: (batch: readonly W[]) => void;
  /** Hears of a failed commit before its writers do; the failed keys are no longer decided. Returns what to tell them. */
  readonly onFailure: (error: unknown, failed: readonly W[]) => { readonly reason: unknown; readonly fatal: boolean };
}

export class CommitQueue<W extends PendingWrite> {
  readonly #options: CommitQueueOptions<W>;
  #queue: W[] = [];
  #queuedBytes = 0;
  #underWay = 0;
  #commits = 0;
  #scheduled = false;
  #held = false;
  /** After a failure nothing is sent before every commit under way has been answered: they fail too. */
  #settling = false;
  #idle: (() => void)[] = [];

  constructor(options: CommitQueueOptions<W>) {
    this.#options = options;
  }

  /** Writes decided and not durable. */
  get size(): number {
    return this.#queue.length + this.#underWay;
  }

  get full(): boolean {
    return this.#queue.length >= MAX_QUEUED || this.#queuedBytes >= MAX_QUEUED_BYTES;
  }

  /** Adds a decided write; the caller has asked `full` before. */
  push(write: W): void {
    this.#queue.push(write);
    this.#queuedBytes += bytesOf(write);
    if (this.#held) return;
    this.#schedule();
  }

  /** Runs `decide`, which pushes a group: nothing is sent before all of it is in the queue. */
  together(decide: () => void): void {
    this.#held = true;
    try {
      decide();
    } finally {
      this.#held = false;
    }
    if (this.#queue.length > 0) this.#schedule();
  }

  #schedule(): void {
    if (this.#queue.length >= WORTH_A_COMMIT) {
      this.#sendIfRoom();
    } else if (this.#commits === 0 && !this.#scheduled) {
      this.#scheduled = true;
      // One microtask later, so that writes decided in the same turn share a commit.
      queueMicrotask(() => {
        this.#scheduled = false;
        this.#sendIfRoom();
      });
    }
  }

  /** Resolves when nothing is queued or under way. */
  drained(): Promise<void> {
    return this.size === 0 ? Promise.resolve() : new Promise((resolve) => this.#idle.push(resolve));
  }

  #sendIfRoom(): void {
    const room = this.#commits === 0 || (this.#commits < MAX_COMMITS && this.#queue.length >= WORTH_A_COMMIT);
    if (room && !this.#settling && this.#queue.length > 0) void this.#send(this.#takeBatch());
  }

  async #send(batch: readonly W[]): Promise<void> {
    this.#underWay += batch.length;
    this.#commits++;
    let failure: { readonly error: unknown } | undefined;
    try {
      await this.#options.commit(batch.map((write) => write.row));
    } catch (error) {
      failure = { error };
    }
    this.#underWay -= batch.length;
    this.#commits--;
    if (failure) {
      this.#settling = true;
      this.#fail(batch, failure.error);
    } else {
      this.#options.publish(batch);
    }
    if (this.#commits === 0) this.#settling = false;
    // The next batch is on its way before this one's writers are answered.
    this.#sendIfRoom();
    if (!failure) for (const write of batch) write.durable();
    if (this.size === 0) for (const resolve of this.#idle.splice(0)) resolve();
  }

  #takeBatch(): W[] {
    let count = 0;
    let bytes = 0;
    while (count < this.#queue.length && count < MAX_BATCH && bytes < MAX_BATCH_BYTES) {
      bytes += bytesOf(this.#queue[count]!);
      count++;
    }
    // A group is at most a handful: the batch grows by them rather than tearing it.
    for (let last = this.#queue[count - 1]; last?.group !== undefined; last = this.#queue[count - 1]) {
      const next = this.#queue[count];
      if (next?.group !== last.group) break;
      bytes += bytesOf(next);
      count++;
    }
    this.#queuedBytes -= bytes;
    return this.#queue.splice(0, count);
  }

  /** Fails the batch, everything decided on top of it, and after a fatal failure all the rest. */
  #fail(batch: readonly W[], error: unknown): void {
    const depends = this.#dependents(batch);
    const { reason, fatal } = this.#options.onFailure(error, [...batch, ...depends]);
    const lost = fatal ? this.#queue : depends;
    this.#queue = [...new Set(this.#queue).difference(new Set(lost))];
    this.#queuedBytes = this.#queue.reduce((sum, write) => sum + bytesOf(write), 0);
    for (const write of [...batch, ...lost]) write.failed(reason);
  }

  /** What waits and was decided on top of the batch: a later state of one of its keys, and the group of such a one. */
  #dependents(batch: readonly W[]): W[] {
    const keys = new Set(batch.map((write) => write.row.key));
    const groups = new Set<object>();
    for (let known = -1; known !== keys.size + groups.size; ) {
      known = keys.size + groups.size;
      for (const { row, group } of this.#queue) {
        if (!keys.has(row.key) && !(group && groups.has(group))) continue;
        keys.add(row.key);
        if (group) groups.add(group);
      }
    }
    return this.#queue.filter((write) => keys.has(write.row.key));
  }
}
