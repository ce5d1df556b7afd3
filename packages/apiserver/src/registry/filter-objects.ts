/** Which of many objects a selection holds: thousands of them are not looked at in one go. */
import { nextTurn } from '@coracle/runtime/clock/next-turn';
import type { StoredObject } from '../cache/object-store.ts';
import type { Selection } from './selection.ts';

/** What is done between two stops, in bytes parsed: some milliseconds. */
const STEP = 256 * 1024;
/** What each object costs besides its bytes, and how much faster bytes are searched than parsed. */
const EACH = 200;
const SEARCH_SPEED = 16;
/** What one requirement of the selection costs for each object. */
const REQUIREMENT = 20;

/** Says when it is time to let others in, by the bytes of the objects that were looked at. */
export class BytesPace {
  #left = STEP;

  /** Counts one object; true when others should be let in before the next. */
  due({ size }: StoredObject, parsed: boolean, requirements = 0): boolean {
    this.#left -= EACH + requirements * REQUIREMENT + (parsed ? size : size / SEARCH_SPEED);
    if (this.#left > 0) return false;
    this.#left = STEP;
    return true;
  }
}

/**
 * The first `limit` items (0 = all) that the selection holds; a promise where looking at them takes long, which rejects
 * with the signal's reason.
 */
export function filterObjects(
  items: readonly StoredObject[],
  options: { readonly selection: Selection; readonly limit: number; readonly signal: AbortSignal },
): readonly StoredObject[] | Promise<readonly StoredObject[]> {
  const { selection, limit } = options;
  if (selection.everything) return limit === 0 || items.length <= limit ? items : items.slice(0, limit);
  const filter = new Filter(items, selection, limit);
  return filter.step() ? filter.kept : finish(filter, options.signal);
}

async function finish(filter: Filter, signal: AbortSignal): Promise<readonly StoredObject[]> {
  do {
    await nextTurn();
    signal.throwIfAborted();
    await filter.load();
  } while (!filter.step());
  return filter.kept;
}

class Filter {
  readonly kept: StoredObject[] = [];
  readonly #items: readonly StoredObject[];
  readonly #selection: Selection;
  readonly #limit: number;
  readonly #pace = new BytesPace();
  #at = 0;

  constructor(items: readonly StoredObject[], selection: Selection, limit: number) {
    this.#items = items;
    this.#selection = selection;
    this.#limit = limit;
  }

  /** Looks at items until others should be let in; true when all is done. */
  step(): boolean {
    while (this.#at < this.#items.length) {
      const item = this.#items[this.#at++]!;
      const parses = this.#selection.parses(item);
      if (this.#selection.matches(item)) this.kept.push(item);
      if (this.#limit > 0 && this.kept.length === this.#limit) return true;
      if (this.#pace.due(item, parses, this.#selection.requirements)) return this.#at === this.#items.length;
      // A large one is parsed in pieces.
      if (this.#at < this.#items.length && this.#items[this.#at]!.size >= STEP) return false;
    }
    return true;
  }

  /** Parses the next item where that takes long. */
  load(): Promise<void> | undefined {
    const item = this.#items[this.#at]!;
    return this.#selection.parses(item) ? item.load(nextTurn) : undefined;
  }
}
