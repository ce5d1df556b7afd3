/**
 * The retained log in memory: every visible change since the floor, in revision order. Watches resume from it and old
 * lists are rebuilt with it. Bounded by number, bytes and age; what falls out raises the floor.
 */
import { lowerBound } from '@coracle/runtime/collections/lower-bound';
import type { Change } from './object-store.ts';

export interface HistoryLimit {
  /** Never fewer than this many changes, however old or large. */
  readonly minChanges: number;
  readonly maxChanges: number;
  /** Bytes of superseded states (current objects are held anyway). */
  readonly maxBytes: number;
  /** Milliseconds; at least the 75 s that the API promises. */
  readonly maxAge: number;
}

export const DEFAULT_HISTORY: HistoryLimit = {
  minChanges: 100,
  maxChanges: 100_000,
  maxBytes: 32 * 1024 * 1024,
  maxAge: 5 * 60_000,
};

/** What one change costs besides the bytes of its states: the records themselves. */
const CHANGE_COST = 128;

interface Entry {
  readonly change: Change;
  readonly at: number;
  readonly bytes: number;
}

export class History {
  readonly #limit: HistoryLimit;
  #entries: Entry[] = [];
  #first = 0;
  #bytes = 0;
  #floor: number;

  constructor(limit: HistoryLimit, floor: number) {
    this.#limit = limit;
    this.#floor = floor;
  }

  /** Changes after this revision are all here. */
  get floor(): number {
    return this.#floor;
  }
  get size(): number {
    return this.#entries.length - this.#first;
  }
  get bytes(): number {
    return this.#bytes;
  }

  /** Adds the newest change; `at` is monotonic time. */
  append(change: Change, at: number): void {
    const superseded = change.previous?.size ?? 0;
    const bytes = CHANGE_COST + (change.type === 'DELETED' ? 2 * superseded : superseded);
    this.#entries.push({ change, at, bytes });
    this.#bytes += bytes;
  }

  /** Drops what the bounds do not allow. */
  trim(now: number): void {
    const { minChanges, maxChanges, maxBytes, maxAge } = this.#limit;
    while (this.size > minChanges) {
      const oldest = this.#entries[this.#first]!;
      if (this.size <= maxChanges && this.#bytes <= maxBytes && now - oldest.at <= maxAge) break;
      this.#drop(oldest);
    }
    this.#repack();
  }

  /** Drops all changes at or below `revision`. */
  forget(revision: number): void {
    while (this.size > 0 && this.#entries[this.#first]!.change.revision <= revision) {
      this.#drop(this.#entries[this.#first]!);
    }
    this.#floor = Math.max(this.#floor, revision);
    this.#repack();
  }

  /** Changes of `prefix` with a revision in (after, upTo], ascending. */
  *since(prefix: string, after: number, upTo: number): Generator<Change, void, void> {
    const older = lowerBound(this.size, (i) => this.#entries[this.#first + i]!.change.revision <= after);
    for (let i = this.#first + older; i < this.#entries.length; i++) {
      const { change } = this.#entries[i]!;
      if (change.revision > upTo) return;
      if (change.current.prefix === prefix) yield change;
    }
  }

  #drop(oldest: Entry): void {
    this.#entries[this.#first] = undefined as never;
    this.#first++;
    this.#bytes -= oldest.bytes;
    this.#floor = Math.max(this.#floor, oldest.change.revision);
  }

  #repack(): void {
    if (this.#first < 1024 || this.#first < this.#entries.length / 2) return;
    this.#entries = this.#entries.slice(this.#first);
    this.#first = 0;
  }
}
