/**
 * What a create gives to its manager: what sets the object apart from an empty one of its kind, in which Go writes some
 * members, too. It follows from the object's shape alone (which members it has and which of them are empty), and clients
 * create objects of the same few shapes again and again, so it is remembered by shape.
 */
import type { JsonObject } from '../meta/own-property.ts';
import { type Schema, ZEROS } from '../schema/schema.ts';
import { oncePerSchema } from '../schema/schema-reach.ts';
import { type Comparison, compareObjects } from './compare.ts';
import { type FieldSet, recursiveDifference, union } from './field-set.ts';
import { ignoredFields, stripIdentity } from './ownership.ts';
import { listItems, memberSchema, shapeOf } from './topology.ts';

/** Shapes remembered over all kinds, the oldest go first; what has a longer description is worked out each time. */
const MAX_SHAPES = 512;
const MAX_SHAPE_TEXT = 4096;
const shapes = new Map<string, FieldSet>();

let lastNumber = 0;
/** A number for each schema, to be part of a key. */
const numberOf = oncePerSchema(() => ++lastNumber);

/** The fields of a new object (without managedFields) that come to be owned, those below `ignore` left out. */
export function createdFields(
  schema: Schema,
  object: JsonObject,
  ignore: readonly (readonly string[])[] | undefined,
): FieldSet {
  const ignored = ignore === undefined || ignore.length === 0 ? '' : JSON.stringify(ignore);
  const shape = shapeText(schema, object);
  const text = shape === undefined ? undefined : `${numberOf(schema)}${ignored}${shape}`;
  const known = text === undefined ? undefined : shapes.get(text);
  if (known !== undefined) return known;
  const fields = wonBy(compareObjects(schema, emptyObject(schema), object), ignore);
  if (text === undefined || text.length > MAX_SHAPE_TEXT) return fields;
  if (shapes.size >= MAX_SHAPES) shapes.delete(shapes.keys().next().value!);
  shapes.set(text, fields);
  return fields;
}

/** What Go writes of an object that nobody has set anything in. */
const emptyObject = oncePerSchema((schema): JsonObject => {
  const empty: JsonObject = {};
  for (const [key, zero] of Object.entries(schema[ZEROS] ?? {})) {
    const isStruct = typeof zero === 'object' && zero !== null;
    empty[key] = isStruct ? emptyObject(schema.properties?.[key] ?? {}) : zero;
  }
  return empty;
});

function wonBy({ added, modified }: Comparison, ignore: readonly (readonly string[])[] | undefined): FieldSet {
  const won = stripIdentity(union(modified, added));
  const below = ignoredFields(ignore);
  return below === undefined ? won : recursiveDifference(won, below);
}

/**
 * Two values with the same text give the same fields. The length before each name keeps neighbours apart. Undefined for
 * a shape too long to be remembered: no more of it is looked at.
 */
function shapeText(schema: Schema | undefined, value: unknown): string | undefined {
  if (value === null) return 'n';
  if (typeof value !== 'object') return value === '' || value === 0 || value === false ? 'z' : 's';
  switch (shapeOf(schema, value)) {
    case 'leaf':
      return Array.isArray(value) ? 'a' : Object.keys(value).length === 0 ? 'e' : 'o';
    case 'list': {
      // Each item takes four characters at the least.
      if ((value as unknown[]).length > MAX_SHAPE_TEXT / 4) return undefined;
      let text = '[';
      for (const item of listItems(schema, value as unknown[])) {
        const inner = shapeText(schema?.items, item.value);
        if (inner === undefined) return undefined;
        text += `${item.element.length}:${item.element}${inner}`;
        if (text.length > MAX_SHAPE_TEXT) return undefined;
      }
      return `${text}]`;
    }
    case 'map': {
      const object = value as JsonObject;
      let text = '{';
      for (const key of Object.keys(object)) {
        const member = object[key];
        if (member === undefined) continue;
        const inner = shapeText(memberSchema(schema, key), member);
        if (inner === undefined) return undefined;
        text += `${key.length}:${key}${inner}`;
        if (text.length > MAX_SHAPE_TEXT) return undefined;
      }
      return `${text}}`;
    }
  }
}
