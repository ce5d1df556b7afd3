/**
 * Which part of an old object is the one before a part of the new one (apiserver cel/common/equality.go). Members of
 * objects correspond by name, items of map-type lists by their keys; items of other lists and members of atomic maps have
 * no counterpart.
 */
import { deepEqual } from '../meta/deep-equal.ts';
import { isJsonObject } from '../meta/own-property.ts';
import { keysText } from './list-types.ts';
import { memberSchema, type Schema } from './schema.ts';
import { createTreeSearch } from './schema-reach.ts';
import type { Walk } from './validation-walk.ts';

/** No counterpart: a part that was not there, or one of a list or map that is taken as a whole. */
export const NO_COUNTERPART: unique symbol = Symbol('no counterpart');

/** The items of old lists by their keys, for as long as one object is validated: each list is looked through once. */
export class OldItems {
  readonly #lists = new Map<readonly unknown[], Map<string, unknown>>();

  /** The item of `list` with the keys of `item`. */
  find(list: readonly unknown[], item: Readonly<Record<string, unknown>>, keys: readonly string[]): unknown {
    let items = this.#lists.get(list);
    if (items === undefined) {
      items = new Map();
      for (const other of list) {
        if (!isJsonObject(other)) continue;
        const identity = keysText(other, keys);
        if (!items.has(identity)) items.set(identity, other);
      }
      this.#lists.set(list, items);
    }
    return items.get(keysText(item, keys));
  }
}

interface Place {
  readonly value: unknown;
  /** May be NO_COUNTERPART itself. */
  readonly old: unknown;
  readonly key: string | number;
  readonly items: OldItems;
}

/** The old value behind a member or an item of `value`. */
export function counterpart(schema: Schema | undefined, { value, old, key, items }: Place): unknown {
  if (typeof key === 'number') {
    if (!isMapList(schema) || !Array.isArray(old) || !Array.isArray(value)) return NO_COUNTERPART;
    return oldItem(schema, { item: value[key], old, items });
  }
  const isThere = isJsonObject(old) && schema?.['x-kubernetes-map-type'] !== 'atomic' && Object.hasOwn(old, key);
  return isThere ? old[key] : NO_COUNTERPART;
}

const isMapList = (schema: Schema | undefined): schema is Schema => schema?.['x-kubernetes-list-type'] === 'map';

function oldItem(
  schema: Schema,
  { item, old, items }: { readonly item: unknown; readonly old: readonly unknown[]; readonly items: OldItems },
): unknown {
  if (!isJsonObject(item)) return NO_COUNTERPART;
  return items.find(old, item, schema['x-kubernetes-list-map-keys'] ?? []) ?? NO_COUNTERPART;
}

/** Whether there are lists with keys at or below a node: once it was looked for, `isSame` asks in no time. */
export const hasMapLists = createTreeSearch(isMapList);

/** True when the value is as it was; in lists with keys the items may have changed places. */
export function isSame(
  schema: Schema | undefined,
  { value, old, items }: { readonly value: unknown; readonly old: unknown; readonly items: OldItems },
): boolean {
  if (value === old) return true;
  if (schema === undefined || !hasMapLists(schema)) return deepEqual(old, value);
  if (Array.isArray(value) && Array.isArray(old) && isMapList(schema)) {
    if (value.length !== old.length) return false;
    return value.every((item) => {
      const before = oldItem(schema, { item, old, items });
      return before !== NO_COUNTERPART && isSame(schema.items, { value: item, old: before, items });
    });
  }
  if (!isJsonObject(value) || !isJsonObject(old) || schema['x-kubernetes-map-type'] === 'atomic') {
    return deepEqual(old, value);
  }
  const keys = Object.keys(value);
  return (
    keys.length === Object.keys(old).length &&
    keys.every(
      (key) =>
        Object.hasOwn(old, key) && isSame(memberSchema(schema, key), { value: value[key], old: old[key], items }),
    )
  );
}

/** The schema of a member or an item. */
const schemaBelow = (schema: Schema | undefined, key: string | number): Schema | undefined =>
  typeof key === 'number' ? schema?.items : schema && memberSchema(schema, key);

/** The question a second validation pass asks at each node: is this as it was in `old`? */
export function unchangedSince(root: Schema, oldRoot: unknown): NonNullable<Walk['unchanged']> {
  /** The values on the way to the node, by depth: a walk visits a node before what is below it. */
  const values: unknown[] = [];
  const items = new OldItems();
  return (walk, value) => {
    values[walk.depth] = value;
    let schema: Schema | undefined = root;
    let old = oldRoot;
    for (let depth = 0; depth < walk.depth; depth++) {
      const key = walk.keys[depth]!;
      old = counterpart(schema, { value: values[depth], old, key, items });
      if (old === NO_COUNTERPART) return false;
      schema = schemaBelow(schema, key);
    }
    return isSame(schema, { value, old, items });
  };
}
