/** Identity of list items by x-kubernetes-list-type. */
import { getOwn, isJsonObject } from '../meta/own-property.ts';
import type { Schema } from './schema.ts';

/**
 * The places of items of a set or map list that repeat an earlier one, with what stands for them in messages; each repeated
 * identity is named once.
 */
export function duplicateItems(
  list: readonly unknown[],
  schema: Schema,
): { readonly index: number; readonly shown: unknown }[] {
  const keys = schema['x-kubernetes-list-map-keys'] ?? [];
  const isMap = schema['x-kubernetes-list-type'] === 'map';
  const seen = new Map<string, boolean>();
  const found: ReturnType<typeof duplicateItems> = [];
  for (let index = 0; index < list.length; index++) {
    const item = list[index];
    if (isMap && !isJsonObject(item)) continue;
    const identity = isMap ? keysText(item as Record<string, unknown>, keys) : stableText(item);
    const reported = seen.get(identity);
    if (reported === false) found.push({ index, shown: isMap ? keysOf(item as Record<string, unknown>, keys) : item });
    seen.set(identity, reported !== undefined);
  }
  return found;
}

/** The key members as one text; a length in front of each string keeps neighbours apart. */
export function keysText(item: Readonly<Record<string, unknown>>, keys: readonly string[]): string {
  let text = '';
  for (const key of keys) {
    const value = getOwn(item, key);
    text += typeof value === 'string' ? `s${value.length}:${value}` : `j${stableText(value)};`;
  }
  return text;
}

function keysOf(item: Record<string, unknown>, keys: readonly string[]): Record<string, unknown> {
  const entries = keys.map((key) => [key, getOwn(item, key)] as const);
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined));
}

/** JSON with sorted members: equal values, and only those, give equal texts. */
export function stableText(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  if (Array.isArray(value)) return `[${value.map(stableText).join(',')}]`;
  const object = value as Record<string, unknown>;
  const members = Object.keys(object)
    .sort()
    .filter((key) => object[key] !== undefined)
    .map((key) => `${JSON.stringify(key)}:${stableText(object[key])}`);
  return `{${members.join(',')}}`;
}
