/**
 * Quantities anywhere in a built-in object, checked. Follows the schema along the value, and only into types that hold
 * a quantity somewhere.
 */

import type { FieldError } from '@coracle/apimachinery/meta/status';
import { parseQuantity, QuantityError } from '@coracle/apimachinery/quantity/quantity';
import type { Schema } from '@coracle/apimachinery/schema/schema';
import { isObject } from '@coracle/apimachinery/types/read-value';
import { invalid } from '@coracle/apimachinery/validation/field-errors';

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

const isAmount = (value: unknown): boolean => amountProblem(value) === undefined;

/** Why a text or number is no quantity; what is neither is refused as such. */
function amountProblem(value: unknown): string | undefined {
  if (typeof value !== 'string' && typeof value !== 'number') return undefined;
  try {
    parseQuantity(String(value));
    return undefined;
  } catch (error) {
    if (error instanceof QuantityError) return error.message;
    throw error;
  }
}

/** One error for each text that is no quantity. */
export function quantityErrors(object: Readonly<Record<string, unknown>>, schema: Schema): FieldError[] {
  const errors: FieldError[] = [];
  if (!areQuantities(object, schema)) collect(errors, object, { schema, path: '' });
  return errors;
}

function collect(
  errors: FieldError[],
  value: unknown,
  { schema, path }: { readonly schema: Schema; readonly path: string },
): void {
  if (!holdsQuantity(schema)) return;
  const { items, properties, additionalProperties: extra } = schema;
  if (isQuantity(schema)) {
    const problem = amountProblem(value);
    if (problem !== undefined) errors.push(invalid(path, value, problem));
  } else if (Array.isArray(value)) {
    for (const [i, item] of items ? value.entries() : [])
      collect(errors, item, { schema: items!, path: `${path}[${i}]` });
  } else if (isObject(value)) {
    for (const key of Object.keys(value)) {
      const named = properties?.[key];
      const below = path === '' ? key : `${path}.${key}`;
      if (named !== undefined) collect(errors, value[key], { schema: named, path: below });
      else if (typeof extra === 'object') collect(errors, value[key], { schema: extra, path: `${path}[${key}]` });
    }
  }
}
