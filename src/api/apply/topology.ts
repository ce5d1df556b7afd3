/**
 * How a value is owned: as a whole (leaf), member by member, or item by item. It follows from the schema's list and map
 * types; where there is no schema (preserve-unknown parts) it is deduced: maps by member, lists as a whole.
 */
import { getOwn, isJsonObject, type JsonObject, setOwn } from '../meta/own-property.ts';
import { stableText } from '../schema/list-types.ts';
import { OBJECT_META_SCHEMA } from '../schema/object-meta-schema.ts';
import type { Schema } from '../schema/schema.ts';

export type Shape = 'leaf' | 'map' | 'list';

/** How this value is owned under this schema. */
export function shapeOf(schema: Schema | undefined, value: unknown): Shape {
  if (Array.isArray(value)) return isKeyedList(schema) ? 'list' : 'leaf';
  if (!isJsonObject(value)) return 'leaf';
  return isAtomicMap(schema) ? 'leaf' : 'map';
}

const isKeyedList = (schema: Schema | undefined): boolean =>
  schema?.['x-kubernetes-list-type'] === 'map' || schema?.['x-kubernetes-list-type'] === 'set';

function isAtomicMap(schema: Schema | undefined): boolean {
  if (schema === undefined) return false;
  if (schema['x-kubernetes-map-type'] !== undefined) return schema['x-kubernetes-map-type'] === 'atomic';
  // RawExtension, JSON and their like among the built-in types are taken or left whole.
  return (
    isBuiltin(schema) &&
    schema.properties === undefined &&
    schema.additionalProperties === undefined &&
    !schema['x-kubernetes-preserve-unknown-fields']
  );
}

const isBuiltin = (schema: Schema): boolean => schema['x-coracle-name']?.startsWith('io.k8s.') === true;

/** The schema of one member; undefined where none is declared. */
export function memberSchema(schema: Schema | undefined, key: string): Schema | undefined {
  if (schema?.properties && Object.hasOwn(schema.properties, key)) return schema.properties[key];
  return typeof schema?.additionalProperties === 'object' ? schema.additionalProperties : undefined;
}

/** True for a field of a struct, false for a key of a map. */
export const isDeclared = (schema: Schema | undefined, key: string): boolean =>
  schema?.properties !== undefined && Object.hasOwn(schema.properties, key);

/** Fields of Go structs that are structs themselves, not pointers: they exist even when nothing is in them. */
const ALWAYS_THERE = new Set([
  'metadata',
  'spec',
  'status',
  'template',
  'strategy',
  'updateStrategy',
  'jobTemplate',
  'resources',
]);

/** True for a member whose mere appearance is no change, because its Go counterpart cannot be absent. */
export const cannotBeAbsent = (parent: Schema | undefined, key: string): boolean =>
  parent !== undefined &&
  ALWAYS_THERE.has(key) &&
  isBuiltin(parent) &&
  // A condition has a `status` too, and that one is a text.
  memberSchema(parent, key)?.type === 'object';

/** One item of a keyed list with its path element. */
export interface ListItem {
  readonly element: string;
  readonly value: unknown;
}

/**
 * The path elements of a keyed list's items, in order. An item without keys is named by its index, so that nothing in a
 * live list gets lost; in a configuration such items are mistakes, which `problems` words. `first` is the index of the
 * first item, where `list` is a piece of a longer one.
 */
export function listItems(
  schema: Schema | undefined,
  list: readonly unknown[],
  first = 0,
): { items: ListItem[]; problems: string[] } {
  const items: ListItem[] = [];
  const problems: string[] = [];
  const keys = schema?.['x-kubernetes-list-type'] === 'map' ? (schema['x-kubernetes-list-map-keys'] ?? []) : undefined;
  list.forEach((value, at) => {
    const index = first + at;
    if (keys === undefined) {
      items.push({ element: `v:${stableText(value)}`, value });
      return;
    }
    const found = itemKeys(value, keys, schema?.items);
    if (typeof found === 'string') problems.push(`element ${index}: ${found}`);
    items.push({ element: typeof found === 'string' ? `i:${index}` : `k:${stableText(found)}`, value });
  });
  return { items, problems };
}

/** The key members of an item; a key that is absent counts with its default. Text = what is wrong with the item. */
function itemKeys(item: unknown, keys: readonly string[], schema: Schema | undefined): JsonObject | string {
  if (!isJsonObject(item)) return 'associative list with keys may not have non-map elements';
  const out: JsonObject = {};
  for (const key of keys) {
    const value = getOwn(item, key) ?? defaultOfKey(schema, key);
    if (value === undefined) {
      return `associative list with keys has an element that omits key field "${key}" (and doesn't have default value)`;
    }
    setOwn(out, key, value);
  }
  return out;
}

function defaultOfKey(schema: Schema | undefined, key: string): unknown {
  const property = memberSchema(schema, key);
  if (property?.default !== undefined) return property.default;
  // The one key default of the built-in types, which the published tables of types leave out.
  return key === 'protocol' && schema !== undefined && isBuiltin(schema) ? 'TCP' : undefined;
}

const ROOTS = new WeakMap<Schema, Schema>();

/** A kind's schema with the real shape of metadata: schemas of custom kinds do not spell it out. */
export function rootSchema(schema: Schema): Schema {
  if (schema.properties?.['metadata']?.['x-coracle-name'] !== undefined) return schema;
  let root = ROOTS.get(schema);
  if (root === undefined) {
    root = { ...schema, properties: { ...schema.properties, metadata: OBJECT_META_SCHEMA } };
    ROOTS.set(schema, root);
  }
  return root;
}
