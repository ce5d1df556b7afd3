import type { TableChange } from './switch-state.ts';

/** Brings a table up to date; true when it is different now. */
export function takeTable<T>(
  table: Map<string, T>,
  keyOf: (entry: T) => string,
  { whole, set = [], remove = [] }: TableChange<T> & { readonly whole: boolean },
): boolean {
  if (whole) table.clear();
  for (const key of remove) table.delete(key);
  for (const entry of set) table.set(keyOf(entry), entry);
  return whole || set.length + remove.length > 0;
}
