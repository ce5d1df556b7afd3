/** Equality and `+` of lists whose schema makes them sets or maps: order does not count, and nothing comes twice. */
import { equals } from './equality.ts';
import { noOverload } from './errors.ts';
import type { CelType } from './types.ts';
import { fromJson, isPlainObject } from './values.ts';

type ListType = NonNullable<CelType['listType']>;

/** `a == b` for such lists. */
export function equalByListType(listType: ListType, a: unknown, b: unknown): boolean {
  if (!Array.isArray(a) || !Array.isArray(b)) return equals(a, b);
  if (a.length !== b.length) return false;
  const byKey = new Map(b.map((item) => [elementKey(listType, item), item]));
  return a.every((item) => {
    const key = elementKey(listType, item);
    return byKey.has(key) && equals(fromJson(item), fromJson(byKey.get(key)));
  });
}

/** `a + b`: elements of the right replace those of the left in place, new ones follow. */
export function mergeByListType(listType: ListType, a: unknown, b: unknown): unknown[] {
  if (!Array.isArray(a) || !Array.isArray(b)) throw noOverload();
  const merged = new Map<string, unknown>();
  for (const item of [...a, ...b]) merged.set(elementKey(listType, item), item);
  return [...merged.values()];
}

function elementKey({ kind, keys }: ListType, item: unknown): string {
  if (kind === 'set' || !isPlainObject(item)) return JSON.stringify(item) ?? String(item);
  return JSON.stringify(keys.map((key) => item[key] ?? null));
}
