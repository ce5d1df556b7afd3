/**
 * Quantities anywhere in a built-in object, checked. Follows the schema along the value, and only into types that hold
 * a quantity somewhere.
 */

import type { FieldError } from '../../../meta/status.ts';
import { parseQuantity, QuantityError } from '../../../quantity/quantity.ts';
import type { Schema } from '../../../schema/schema.ts';
import { isObject } from '../read-value.ts';

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
    const extra = typeof schema.additionalProperties === 'object' ? schema.additionalProperties : undefined;
    for (const [key, entry] of Object.entries(value)) {
      const named = schema.properties?.[key];
      const next = named ?? extra;
      if (next === undefined) continue;
      const child = named === undefined ? `${path}[${key}]` : path === '' ? key : `${path}.${key}`;
      walk(entry, next, { path: child, visit });
    }
  }
}

/** One error for each text that is no quantity. */
export function quantityErrors(object: Readonly<Record<string, unknown>>, schema: Schema): FieldError[] {
  const errors: FieldError[] = [];
  const visit: Visit = (value, path) => {
    try {
      parseQuantity(String(value));
    } catch (error) {
      if (!(error instanceof QuantityError)) throw error;
      errors.push({ type: 'FieldValueInvalid', field: path, value, detail: error.message });
    }
  };
  walk(object, schema, { path: '', visit });
  return errors;
}
