/**
 * Defaults and nulls. Order on the way in (custom kinds): prune, `dropNulls`, `applyDefaults`; a null that has a default
 * is left by the first and replaced by the second, a null of a nullable field stays null.
 */
import { cloneJson } from '../meta/deep-clone.ts';
import { setOwn } from '../meta/own-property.ts';
import { OBJECT_META_SCHEMA } from './object-meta-schema.ts';
import { FORMS, formOf, memberSchema, restSchema, type Schema, ZEROS } from './schema.ts';
import { createReach, oncePerSchema } from './schema-reach.ts';

type JsonObject = Record<string, unknown>;
type Apply = (value: unknown) => void;

/** Whether a default lies at or below a node; most of a built-in type is skipped by that. */
const reachesDefault = createReach((schema) => schema.default !== undefined || schema[ZEROS] !== undefined);

/**
 * Fills in, in place and from the top down, what is absent (or null, where null is not allowed) and has a default, or a
 * zero that Go always writes.
 */
export const applyDefaults = (schema: Schema, value: unknown): void => defaulterOf(schema)(value);

const defaulterOf = oncePerSchema((schema): Apply => (reachesDefault(schema) ? compile(schema) : () => {}));

const lacks = (value: unknown, schema: Schema): boolean => value === undefined || (value === null && !schema.nullable);

function compile(schema: Schema): Apply {
  const { items, properties } = schema;
  const additional = restSchema(schema);
  const zeros = schema[ZEROS];
  const members = Object.keys(properties ?? {})
    .map((key) => {
      const fallback = properties![key]!.default ?? zeros?.[key];
      return { key, schema: properties![key]!, fallback, isNull: fallback === null && zeros?.[key] === null };
    })
    .filter((member) => member.fallback !== undefined || reachesDefault(member.schema));
  const rest = additional && reachesDefault(additional) ? additional : undefined;
  const element = items && reachesDefault(items) ? items : undefined;
  const memberOf = (object: JsonObject, member: (typeof members)[number]): unknown => {
    let current = Object.hasOwn(object, member.key) ? object[member.key] : undefined;
    if (member.fallback !== undefined && member.fallback !== null && lacks(current, member.schema)) {
      current = cloneJson(member.fallback);
      setOwn(object, member.key, current);
    } else if (member.isNull && current === undefined) {
      current = null;
      object[member.key] = null;
    }
    return current;
  };
  return (value) => {
    if (Array.isArray(value)) {
      if (element !== undefined)
        for (let i = 0; i < value.length; i++) defaulterOf(element)(filledIn(value, i, element));
    } else if (typeof value === 'object' && value !== null) {
      const object = value as JsonObject;
      for (const member of members) {
        const current = memberOf(object, member);
        if (typeof current === 'object' && current !== null) defaulterOf(member.schema)(current);
      }
      if (rest === undefined) return;
      for (const key of Object.keys(object)) {
        if (!(properties && Object.hasOwn(properties, key))) defaulterOf(rest)(filledIn(object, key, rest));
      }
    }
  };
}

/** What stands in a list or map, with the default of its schema in the place of a null that is not allowed. */
function filledIn(holder: unknown[] | JsonObject, key: string | number, schema: Schema): unknown {
  const object = holder as JsonObject;
  const isFilled = object[key] === null && !schema.nullable && schema.default !== undefined;
  if (isFilled) setOwn(object, String(key), cloneJson(schema.default));
  return object[key];
}

/**
 * Handles explicit nulls, in place. Built-in kinds: a null field is unset (and stays where Go writes it as null), a null
 * map value or list item is the zero value of its type, as Go decodes it. Custom kinds: nulls of non-nullable fields
 * without a default are removed.
 */
export function dropNulls(schema: Schema, value: unknown, options: { custom: boolean }): void {
  if (!containsNull(value)) return;
  if (options.custom) dropCustom(schema, value, { root: true });
  else dropBuiltin(schema, value);
}

/** Takes out what is null in the metadata of a custom object and of the objects in it, and nothing else. */
export function dropMetadataNulls(schema: Schema, value: unknown): void {
  if (containsNull(value)) dropCustom(schema, value, { root: true, metadataOnly: true });
}

/** Nearly every object has no null at all, and that is found out without the schema. */
function containsNull(value: unknown): boolean {
  if (typeof value !== 'object') return false;
  if (value === null) return true;
  if (Array.isArray(value)) {
    for (const item of value) if (typeof item === 'object' && containsNull(item)) return true;
    return false;
  }
  for (const key of Object.keys(value)) {
    const member = (value as JsonObject)[key];
    if (typeof member === 'object' && containsNull(member)) return true;
  }
  return false;
}

function dropBuiltin(schema: Schema, value: unknown): void {
  const form = schema[FORMS] && formOf(schema[FORMS], value);
  if (form !== undefined) {
    dropBuiltin(form, value);
    return;
  }
  if (typeof value !== 'object' || value === null || schema['x-kubernetes-preserve-unknown-fields']) return;
  if (Array.isArray(value)) {
    const item = schema.items;
    if (item === undefined) return;
    for (let i = 0; i < value.length; i++) {
      if (value[i] === null) value[i] = zeroOf(item);
      else dropBuiltin(item, value[i]);
    }
    return;
  }
  if (schema.properties === undefined && restSchema(schema) === undefined) return;
  for (const key of Object.keys(value)) {
    const below = dropMember(schema, value as JsonObject, key);
    if (below !== undefined) dropBuiltin(below, (value as JsonObject)[key]);
  }
}

/** Handles the member where it is null; else returns the schema to go on with below it, if there is one. */
function dropMember(schema: Schema, object: JsonObject, key: string): Schema | undefined {
  const member = object[key];
  if (typeof member !== 'object') return undefined;
  const below = memberSchema(schema, key);
  if (member !== null) return below;
  if (schema.properties && Object.hasOwn(schema.properties, key)) {
    if (schema[ZEROS]?.[key] !== null) delete object[key];
  } else if (below !== undefined) setOwn(object, key, zeroOf(below));
  return undefined;
}

/** What Go holds for a value of a type that nobody gave. */
export function zeroOf(schema: Schema): unknown {
  if (schema['x-coracle-name']?.endsWith('.Quantity')) return '0';
  if (schema.type === 'array') return [];
  return schema.type === 'object' ? {} : schema.type === undefined ? null : SCALAR_ZEROS[schema.type];
}

const SCALAR_ZEROS = { string: '', integer: 0, number: 0, boolean: false };

interface DropCustom {
  readonly root?: boolean;
  readonly metadataOnly?: boolean;
}

function dropCustom(schema: Schema, value: unknown, { root = false, metadataOnly = false }: DropCustom): void {
  if (typeof value !== 'object' || value === null) return;
  if (Array.isArray(value)) {
    if (schema.items) for (const item of value) dropCustom(schema.items, item, { metadataOnly });
    return;
  }
  const object = value as JsonObject;
  const embedded = root || schema['x-kubernetes-embedded-resource'] === true;
  for (const key of Object.keys(object)) {
    const member = object[key];
    if (typeof member !== 'object') continue;
    if (embedded && key === 'metadata') {
      dropBuiltin(OBJECT_META_SCHEMA, member);
      continue;
    }
    const property = memberSchema(schema, key);
    if (property === undefined) continue;
    if (member !== null) dropCustom(property, member, { metadataOnly });
    else if (!metadataOnly && !property.nullable && (property.default === undefined || property.default === null))
      delete object[key];
  }
}
