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
  { selection, limit, signal }: { readonly selection: Selection; readonly limit: number; readonly signal: AbortSignal },
): readonly StoredObject[] | Promise<readonly StoredObject[]> {
  if (selection.everything) return limit === 0 || items.length <= limit ? items : items.slice(0, limit);
  const kept: StoredObject[] = [];
  const pace = new BytesPace();
  let at = 0;
  /** Looks at items until others should be let in; true when all is done. */
  const step = (): boolean => {
    while (at < items.length) {
      const item = items[at++]!;
      const parses = selection.parses(item);
      if (selection.matches(item)) kept.push(item);
      if (limit > 0 && kept.length === limit) return true;
      if (pace.due(item, parses, selection.requirements)) return at === items.length;
      // A large one is parsed in pieces.
      if (at < items.length && items[at]!.size >= STEP) return false;
    }
    return true;
  };
  const finish = async (): Promise<readonly StoredObject[]> => {
    do {
      await nextTurn();
      signal.throwIfAborted();
      const next = items[at]!;
      if (selection.parses(next)) await next.load(nextTurn);
    } while (!step());
    return kept;
  };
  return step() ? kept : finish();
}
