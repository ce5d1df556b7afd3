/** How much defaults may add to a value. */
import type { Schema } from './schema.ts';
import { isLeafSchema } from './schema-reach.ts';

/** Beyond this nobody counts: it is much. */
const MOST = 20_000;

const COUNTS = new WeakMap<Schema, number>();

/**
 * The nodes of all defaults at and below a schema, as often as each stands there once, up to `MOST`: what the items of a
 * list are given comes with each of them. Counted once for a schema.
 */
export function defaultedFields(schema: Schema): number {
  const own = ownDefault(schema);
  // Most nodes: they are not worth remembering.
  if (isLeafSchema(schema)) return own;
  const known = COUNTS.get(schema);
  if (known !== undefined) return known;
  // A type may hold itself.
  COUNTS.set(schema, own);
  let count = own;
  const { items, additionalProperties: rest, properties = {} } = schema;
  if (items !== undefined) count += defaultedFields(items);
  if (typeof rest === 'object') count += defaultedFields(rest);
  for (const name of Object.keys(properties)) {
    if (count >= MOST) break;
    count += defaultedFields(properties[name]!);
  }
  COUNTS.set(schema, Math.min(count, MOST));
  return Math.min(count, MOST);
}

const ownDefault = (schema: Schema): number =>
  schema.default === undefined ? 0 : MOST - Math.max(0, nodesLeft(schema.default, MOST));

/**
 * What is left of so many nodes; below zero for a value of more. Of a large object, naming the members is all the work
 * there is, but that is some milliseconds: others should be let in after it.
 */
function nodesLeft(value: unknown, most: number): number {
  if (typeof value !== 'object' || value === null) return most - 1;
  let left = most - 1;
  if (Array.isArray(value)) {
    if (value.length > left) return -1;
    for (let i = 0; i < value.length && left >= 0; i++) left = nodesLeft(value[i], left);
    return left;
  }
  const keys = Object.keys(value);
  if (keys.length > left) return -1;
  for (let i = 0; i < keys.length && left >= 0; i++)
    left = nodesLeft((value as Record<string, unknown>)[keys[i]!], left);
  return left;
}
