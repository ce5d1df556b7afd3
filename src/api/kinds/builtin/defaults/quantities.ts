/**
 * Quantities anywhere in a built-in object: `1024Mi` is stored as `1Gi` and the bare number 2 as `"2"`, because the
 * API's own decoder does so. Follows the schema along the value, and only into types that hold a quantity somewhere.
 */

import { setOwn } from '../../../meta/own-property.ts';
import type { FieldError } from '../../../meta/status.ts';
import { formatQuantity, parseQuantity, QuantityError } from '../../../quantity/quantity.ts';
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

type Visit = (value: string | number, at: { readonly path: string; readonly set: (text: string) => void }) => void;

function walk(value: unknown, schema: Schema, at: { path: string; set: (text: string) => void; visit: Visit }): void {
  if (!holdsQuantity(schema)) return;
  if (isQuantity(schema)) {
    if (typeof value === 'string' || typeof value === 'number') at.visit(value, at);
    return;
  }
  const { visit, path } = at;
  if (Array.isArray(value)) {
    const { items } = schema;
    if (items === undefined) return;
    for (const [i, item] of value.entries()) {
      const set = (text: string): void => {
        value[i] = text;
      };
      walk(item, items, { path: `${path}[${i}]`, set, visit });
    }
  } else if (isObject(value)) {
    const extra = typeof schema.additionalProperties === 'object' ? schema.additionalProperties : undefined;
    for (const [key, entry] of Object.entries(value)) {
      const named = schema.properties?.[key];
      const next = named ?? extra;
      if (next === undefined) continue;
      const child = named === undefined ? `${path}[${key}]` : path === '' ? key : `${path}.${key}`;
      walk(entry, next, { path: child, set: (text) => setOwn(value, key, text), visit });
    }
  }
}

/** Rewrites every readable quantity in canonical form; unreadable ones stay for `quantityErrors` to name. */
export function canonicalizeQuantities(object: Record<string, unknown>, schema: Schema): void {
  const visit: Visit = (value, { set }) => {
    try {
      const text = formatQuantity(parseQuantity(String(value)));
      if (text !== value) set(text);
    } catch (error) {
      if (!(error instanceof QuantityError)) throw error;
    }
  };
  walk(object, schema, { path: '', set: () => {}, visit });
}

/** One error for each text that is no quantity. */
export function quantityErrors(object: Readonly<Record<string, unknown>>, schema: Schema): FieldError[] {
  const errors: FieldError[] = [];
  const visit: Visit = (value, { path }) => {
    try {
      parseQuantity(String(value));
    } catch (error) {
      if (!(error instanceof QuantityError)) throw error;
      errors.push({ type: 'FieldValueInvalid', field: path, value, detail: error.message });
    }
  };
  walk(object, schema, { path: '', set: () => {}, visit });
  return errors;
}
