/**
 * A prefix as it was at an older revision: today's index with the changes since undone. Only the keys that changed are
 * held; the views of the few lists being paged right now are kept and brought forward page by page.
 */
import { lowerBound } from '@coracle/runtime/collections/lower-bound';
import type { History } from './history.ts';
import type { OrderedIndex } from './ordered-index.ts';
import type { Stored } from './stored-object.ts';

/** Half-open range of keys; `to` undefined means to the end. */
export interface KeyRange {
  readonly from: string;
  readonly to: string | undefined;
}

/** Views kept at a time; the longest unused is dropped. */
const KEPT_VIEWS = 8;

class PastView {
  readonly #states = new Map<string, Stored | undefined>();
  #keys: string[] = [];
  #seen: number;

  constructor(revision: number) {
    this.#seen = revision;
  }

  /** Takes in the changes up to `now`. A key's state is what stood before its first change after the view's revision. */
  advance(history: History, prefix: string, now: number): void {
    const known = this.#keys.length;
    for (const { current, previous } of history.since(prefix, this.#seen, now)) {
      const { key } = current as Stored;
      if (this.#states.has(key)) continue;
      this.#states.set(key, previous as Stored | undefined);
      this.#keys.push(key);
    }
    this.#seen = now;
    if (this.#keys.length > known) this.#keys.sort(byUnits);
  }

  /** As `OrderedIndex.range`. */
  *range(index: OrderedIndex<Stored>, range: KeyRange): Generator<readonly Stored[], void, void> {
    const undone = this.#keysIn(range);
    let u = 0;
    for (const items of index.range(range.from, range.to)) {
      if (u === undone.length || undone[u]! > items.at(-1)!.key) {
        yield items;
        continue;
      }
      const then: Stored[] = [];
      for (const item of items) {
        for (; u < undone.length && undone[u]! <= item.key; u++) {
          const state = this.#states.get(undone[u]!);
          if (state) then.push(state);
        }
        if (!this.#states.has(item.key)) then.push(item);
      }
      yield then;
    }
    yield undone.slice(u).flatMap((key) => this.#states.get(key) ?? []);
  }

  count(index: OrderedIndex<Stored>, range: KeyRange): number {
    let count = index.countRange(range.from, range.to);
    for (const key of this.#keysIn(range)) {
      count += Number(this.#states.get(key) !== undefined) - Number(index.get(key) !== undefined);
    }
    return count;
  }

  #keysIn({ from, to }: KeyRange): readonly string[] {
    const position = (key: string): number => lowerBound(this.#keys.length, (i) => this.#keys[i]! < key);
    return this.#keys.slice(position(from), to === undefined ? undefined : position(to));
  }
}

/** The views in use, by prefix and revision. */
export class PastViews {
  readonly #history: History;
  readonly #views = new Map<string, PastView>();

  constructor(history: History) {
    this.#history = history;
  }

  /** `prefix` as it was at `revision`, which must not lie below the history's floor; `now` is the published revision. */
  at(prefix: string, revision: number, now: number): PastView {
    const name = `${revision} ${prefix}`;
    const view = this.#views.get(name) ?? new PastView(revision);
    this.#views.delete(name);
    this.#views.set(name, view);
    view.advance(this.#history, prefix, now);
    for (const oldest of this.#views.keys()) {
      if (this.#views.size <= KEPT_VIEWS) break;
      this.#views.delete(oldest);
    }
    return view;
  }

  /** Drops the views that the history no longer reaches, and with them the old states they hold. */
  prune(): void {
    for (const name of this.#views.keys()) {
      if (Number.parseInt(name, 10) < this.#history.floor) this.#views.delete(name);
    }
  }
}

const byUnits = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
