/**
 * Quantities anywhere in a built-in object, checked. Follows the schema along the value, and only into types that hold
 * a quantity somewhere.
 */

import type { FieldError } from '@coracle/apimachinery/meta/status';
import { parseQuantity, QuantityError } from '@coracle/apimachinery/quantity/quantity';
import type { Schema } from '@coracle/apimachinery/schema/schema';
import { isObject } from '@coracle/apimachinery/types/read-value';

const holds = new WeakMap<Schema, boolean>();

const isQuantity = (schema: Schema): boolean => schema.format === 'quantity';

/** Does a quantity stand anywhere below this schema? */
export function holdsQuantity(schema: Schema): boolean {
  const known = holds.get(schema);
  if (known !== undefined) return known;
  // A type being looked at says no to itself; whoever asked first keeps looking elsewhere.
  holds.set(schema, false);
  const { additionalProperties: extra } = schema;
  const found =
    isQuantity(schema) ||
    (schema.items !== undefined && holdsQuantity(schema.items)) ||
    (typeof extra === 'object' && holdsQuantity(extra)) ||
    Object.values(schema.properties ?? {}).some(holdsQuantity);
  holds.set(schema, found);
  return found;
}

type Visit = (value: string | number, path: string) => void;

function walk(value: unknown, schema: Schema, at: { path: string; visit: Visit }): void {
  if (!holdsQuantity(schema)) return;
  if (isQuantity(schema)) {
    if (typeof value === 'string' || typeof value === 'number') at.visit(value, at.path);
    return;
  }
  const { visit, path } = at;
  if (Array.isArray(value)) {
    const { items } = schema;
    if (items === undefined) return;
    for (const [i, item] of value.entries()) walk(item, items, { path: `${path}[${i}]`, visit });
  } else if (isObject(value)) {
    for (const key of Object.keys(value)) {
      const next = memberOf(schema, key, path);
      if (next !== undefined) walk(value[key], next.schema, { path: next.path, visit });
    }
  }
}

function memberOf(schema: Schema, key: string, path: string): { schema: Schema; path: string } | undefined {
  const named = schema.properties?.[key];
  const extra = typeof schema.additionalProperties === 'object' ? schema.additionalProperties : undefined;
  const next = named ?? extra;
  if (next === undefined) return undefined;
  return { schema: next, path: named === undefined ? `${path}[${key}]` : path === '' ? key : `${path}.${key}` };
}

/** True when every text that ought to be a quantity is one: nearly always, and asked on every write, so without paths. */
function areQuantities(value: unknown, schema: Schema): boolean {
  if (typeof value !== 'object' || value === null) return !isQuantity(schema) || isAmount(value);
  if (!holdsQuantity(schema)) return true;
  if (Array.isArray(value)) {
    const { items } = schema;
    if (items === undefined || !holdsQuantity(items)) return true;
    for (const item of value) if (!areQuantities(item, items)) return false;
    return true;
  }
  const object = value as Record<string, unknown>;
  const { properties, additionalProperties } = schema;
  const extra = typeof additionalProperties === 'object' ? additionalProperties : undefined;
  for (const key of Object.keys(object)) {
    const next = properties?.[key] ?? extra;
    if (next !== undefined && !areQuantities(object[key], next)) return false;
  }
  return true;
}

function isAmount(value: unknown): boolean {
  if (typeof value !== 'string' && typeof value !== 'number') return true;
  try {
    parseQuantity(String(value));
    return true;
  } catch (error) {
    if (error instanceof QuantityError) return false;
    throw error;
  }
}

/** One error for each text that is no quantity. */
export function quantityErrors(object: Readonly<Record<string, unknown>>, schema: Schema): FieldError[] {
  if (areQuantities(object, schema)) return [];
  const errors: FieldError[] = [];
  walk(object, schema, { path: '', visit: collector(errors) });
  return errors;
}

const collector =
  (errors: FieldError[]): Visit =>
  (value, path) => {
    try {
      parseQuantity(String(value));
    } catch (error) {
      if (!(error instanceof QuantityError)) throw error;
      errors.push({ type: 'FieldValueInvalid', field: path, value, detail: error.message });
    }
  };
