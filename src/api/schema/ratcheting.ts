/**
 * Which part of an old object is the one before a part of the new one (apiserver cel/common/equality.go). Members of
 * objects correspond by name, items of map-type lists by their keys; items of other lists and members of atomic maps have
 * no counterpart.
 */
import { deepEqual } from '../meta/deep-equal.ts';
import { getOwn, isJsonObject } from '../meta/own-property.ts';
import type { Schema } from './schema.ts';
import type { Walk } from './validation-walk.ts';

/** No counterpart: a part that was not there, or one of a list or map that is taken as a whole. */
export const NO_COUNTERPART: unique symbol = Symbol('no counterpart');

/** The old value behind a member or an item of `value`. `old` may be NO_COUNTERPART itself. */
export function counterpart(
  schema: Schema | undefined,
  { value, old, key }: { readonly value: unknown; readonly old: unknown; readonly key: string | number },
): unknown {
  if (typeof key === 'number') return Array.isArray(old) ? oldItem(schema, value, old, key) : NO_COUNTERPART;
  if (!isJsonObject(old) || schema?.['x-kubernetes-map-type'] === 'atomic' || !Object.hasOwn(old, key)) {
    return NO_COUNTERPART;
  }
  return old[key];
}

function oldItem(schema: Schema | undefined, list: unknown, old: readonly unknown[], index: number): unknown {
  if (schema?.['x-kubernetes-list-type'] !== 'map' || !Array.isArray(list)) return NO_COUNTERPART;
  const item: unknown = list[index];
  const keys = schema['x-kubernetes-list-map-keys'] ?? [];
  if (!isJsonObject(item)) return NO_COUNTERPART;
  const found = old.find(
    (other) => isJsonObject(other) && keys.every((key) => deepEqual(getOwn(other, key), getOwn(item, key))),
  );
  return found ?? NO_COUNTERPART;
}

/** The schema of a member or an item. */
export function schemaBelow(schema: Schema | undefined, key: string | number): Schema | undefined {
  if (typeof key === 'number') return schema?.items;
  if (schema?.properties && Object.hasOwn(schema.properties, key)) return schema.properties[key];
  return typeof schema?.additionalProperties === 'object' ? schema.additionalProperties : undefined;
}

/** The question a second validation pass asks at each node: is this as it was in `old`? */
export function unchangedSince(root: Schema, oldRoot: unknown): NonNullable<Walk['unchanged']> {
  /** The values on the way to the node, by depth: a walk visits a node before what is below it. */
  const values: unknown[] = [];
  return (walk, value) => {
    values[walk.depth] = value;
    let schema: Schema | undefined = root;
    let old = oldRoot;
    for (let depth = 0; depth < walk.depth; depth++) {
      const key = walk.keys[depth]!;
      old = counterpart(schema, { value: values[depth], old, key });
      if (old === NO_COUNTERPART) return false;
      schema = schemaBelow(schema, key);
    }
    return deepEqual(old, value);
  };
}
