/** The order of a list after a strategic merge. */
import { getOwn, isJsonObject } from '../meta/own-property.ts';
import { stableText } from '../schema/list-types.ts';

/**
 * Sorts merged items. Items that `wanted` names follow its order; the others keep the order they had in `before`. The
 * two rows are then interleaved: an item of the second row goes in front of the first item of the first row that stood
 * behind it in `before`.
 */
export function orderElements(
  merged: readonly unknown[],
  options: { wanted: readonly unknown[]; before: readonly unknown[]; mergeKey: string },
): unknown[] {
  const wanted = positions(options.wanted, options.mergeKey);
  const before = positions(options.before, options.mergeKey);
  const entries = merged.map((item) => {
    const id = identity(item, options.mergeKey);
    return { item, wanted: wanted.get(id), before: before.get(id) };
  });
  const named = entries.filter((e) => e.wanted !== undefined).sort((a, b) => a.wanted! - b.wanted!);
  const others = entries.filter((e) => e.wanted === undefined).sort((a, b) => (a.before ?? -1) - (b.before ?? -1));
  const out: unknown[] = [];
  let i = 0;
  let j = 0;
  while (i < others.length || j < named.length) {
    const other = others[i];
    const next = named[j];
    const otherFirst =
      next === undefined || (other?.before !== undefined && next.before !== undefined && other.before < next.before);
    if (other !== undefined && otherFirst) {
      out.push(other.item);
      i++;
    } else {
      out.push(next!.item);
      j++;
    }
  }
  return out;
}

const identity = (item: unknown, mergeKey: string): string =>
  identityText(mergeKey !== '' && isJsonObject(item) ? getOwn(item, mergeKey) : item);

/** Equal for equal values and only for those; mostly it is a text, which then stands for itself. */
export function identityText(value: unknown): string {
  if (typeof value === 'string') return value.startsWith(MARK) ? `${MARK}s${value}` : value;
  return value === undefined ? MARK : `${MARK}j${stableText(value)}`;
}
const MARK = '\u0000';

/** First position of each identity. */
function positions(list: readonly unknown[], mergeKey: string): Map<string, number> {
  const out = new Map<string, number>();
  for (const [index, item] of list.entries()) {
    const id = identity(item, mergeKey);
    if (!out.has(id)) out.set(id, index);
  }
  return out;
}
