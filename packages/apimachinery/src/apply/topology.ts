/**
 * How a value is owned: as a whole (leaf), member by member, or item by item. It follows from the schema's list and map
 * types; where there is no schema (preserve-unknown parts) it is deduced: maps by member, lists as a whole.
 */
import { isJsonObject, type JsonObject, setOwn } from '../meta/own-property.ts';
import { stableText } from '../schema/list-types.ts';
import { OBJECT_META_SCHEMA } from '../schema/object-meta-schema.ts';
import { memberSchema as declaredMember, goTypeName, type Schema } from '../schema/schema.ts';
import { oncePerSchema } from '../schema/schema-reach.ts';

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
  if (schema?.['x-kubernetes-embedded-resource'] && Object.hasOwn(EMBEDDED, key)) return EMBEDDED[key];
  return schema && declaredMember(schema, key);
}

/** True for a field of a struct, false for a key of a map. */
export const isDeclared = (schema: Schema | undefined, key: string): boolean =>
  (schema?.properties !== undefined && Object.hasOwn(schema.properties, key)) ||
  (schema?.['x-kubernetes-embedded-resource'] === true && Object.hasOwn(EMBEDDED, key));

/** What every object in an object has, whether its schema spells it out or not. */
const EMBEDDED: Readonly<Record<string, Schema>> = {
  apiVersion: { type: 'string' },
  kind: { type: 'string' },
  metadata: OBJECT_META_SCHEMA,
};

/** Fields of Go structs that are structs themselves, not pointers: they exist even when nothing is in them. */
const ALWAYS_THERE = new Set(
  'metadata spec status template strategy updateStrategy jobTemplate resources names acceptedNames loadBalancer nodeInfo daemonEndpoints kubeletEndpoint'.split(
    ' ',
  ),
);

/** Fields of such a name that are pointers, by the types that have them. */
const POINTERS: Readonly<Record<string, readonly string[]>> = {
  resources: ['PodSpec', 'PodStatus', 'ContainerStatus'],
  template: ['ReplicationControllerSpec'],
};

/** True for a member whose mere appearance is no change, because its Go counterpart cannot be absent. */
export const cannotBeAbsent = (parent: Schema | undefined, key: string): boolean =>
  parent !== undefined &&
  ALWAYS_THERE.has(key) &&
  isBuiltin(parent) &&
  !(Object.hasOwn(POINTERS, key) && POINTERS[key]!.includes(goTypeName(parent)!)) &&
  // A condition has a `status` too, and that one is a text.
  memberSchema(parent, key)?.type === 'object';

/** Keyed lists of Go structs without `omitempty`, by name, with the type that has them. */
const NULL_LISTS: Readonly<Record<string, string>> = {
  conditions: 'CustomResourceDefinitionStatus',
  containers: 'PodSpec',
};

/** True for a keyed list that Go writes as null where there is none: that items are in it is all that is new. */
export const isNullWhenEmpty = (parent: Schema | undefined, key: string): boolean =>
  parent !== undefined && Object.hasOwn(NULL_LISTS, key) && goTypeName(parent) === NULL_LISTS[key];

/** One item of a keyed list with its path element. */
export interface ListItem {
  readonly element: string;
  readonly value: unknown;
}

/**
 * The path elements of a keyed list's items, in order. An item without an identity is named by its index, so that nothing
 * in a live list gets lost; `typingErrors` has the words for it.
 */
export const listItems = (schema: Schema | undefined, list: readonly unknown[]): ListItem[] =>
  list.map((value, at) => {
    const { element, problem } = itemElement(schema, value);
    return { element: problem === undefined ? element : `i:${at}`, value };
  });

/** The path element of one item of a keyed list, or why it has none (structured-merge-diff, typed/helpers.go). */
export function itemElement(
  schema: Schema | undefined,
  item: unknown,
): { readonly element: string; readonly problem?: string } {
  const keys = schema?.['x-kubernetes-list-type'] === 'map' ? (schema['x-kubernetes-list-map-keys'] ?? []) : undefined;
  if (keys === undefined) {
    const problem = setProblem(item);
    return { element: `v:${stableText(item)}`, ...(problem !== undefined && { problem }) };
  }
  const found = itemKeys(item, keys, schema?.items);
  return typeof found === 'string' ? { element: '', problem: found } : { element: `k:${stableText(found)}` };
}

function setProblem(item: unknown): string | undefined {
  if (item === null) return "associative list without keys has an element that's an explicit null";
  if (Array.isArray(item)) return 'not supported: associative list with lists as elements';
  return isJsonObject(item) ? "associative list without keys has an element that's a map type" : undefined;
}

/**
 * The key members of an item: a key that is absent counts with its default, and one without a default is no part of the
 * identity as long as another is. Text = what is wrong with the item.
 */
function itemKeys(item: unknown, keys: readonly string[], schema: Schema | undefined): JsonObject | string {
  if (item === null) return 'associative list with keys may not have a null element';
  if (!isJsonObject(item)) return 'associative list with keys may not have non-map elements';
  const out: JsonObject = {};
  let isBare = keys.length > 0;
  for (const key of keys) {
    const value = Object.hasOwn(item, key) && item[key] !== undefined ? item[key] : defaultOfKey(schema, key);
    if (value === undefined) continue;
    setOwn(out, key, value);
    isBare = false;
  }
  if (!isBare) return out;
  const named = `[${keys.map((key) => JSON.stringify(key)).join(' ')}]`;
  return `associative list with keys has an element that omits all key fields ${named} (and doesn't have default values for any key fields)`;
}

function defaultOfKey(schema: Schema | undefined, key: string): unknown {
  const property = memberSchema(schema, key);
  if (property?.default !== undefined) return property.default ?? undefined;
  if (schema === undefined || !isBuiltin(schema)) return undefined;
  // Defaults of the built-in types, which the published tables of types leave out: what Go always writes counts with
  // its zero value.
  if (key === 'protocol') return 'TCP';
  if (!schema.required?.includes(key)) return undefined;
  return property?.type === 'string' ? '' : property?.type === 'integer' ? 0 : undefined;
}

const withMetadata = oncePerSchema(
  (schema): Schema => ({ ...schema, properties: { ...schema.properties, metadata: OBJECT_META_SCHEMA } }),
);

/** A kind's schema with the real shape of metadata: schemas of custom kinds do not spell it out. */
export const rootSchema = (schema: Schema): Schema =>
  schema.properties?.['metadata']?.['x-coracle-name'] === undefined ? withMetadata(schema) : schema;
