/**
 * The text forms in which the typed API hands scalars out: a Quantity is decoded and printed again (`1000m` -> `1`, the
 * number 2 -> `"2"`), a Time is UTC with whole seconds, a MicroTime has six decimals. Built-in kinds only: in custom
 * resources such text stays as it was written.
 */
import { formatQuantity, parseQuantity } from '../quantity/quantity.ts';
import { isRfc3339 } from './formats.ts';
import { childSchemas } from './resolve-definitions.ts';
import type { Schema } from './schema.ts';

type Rewrite = (value: unknown) => unknown;

const REWRITES = new Map<string, Rewrite>([
  ['Quantity', rewriteQuantity],
  ['Time', (value) => rewriteTime(value, 0)],
  ['MicroTime', (value) => rewriteTime(value, 6)],
]);
const REACHES = new WeakMap<Schema, boolean>();

/** Rewrites, in place, every Quantity, Time and MicroTime below `value`; values that do not decode are left alone. */
export function canonicalizeScalars(schema: Schema, value: unknown): void {
  if (typeof value !== 'object' || value === null || !reachesScalar(schema)) return;
  if (Array.isArray(value)) {
    const items = schema.items;
    if (items === undefined) return;
    const rewrite = rewriteOf(items);
    for (let i = 0; i < value.length; i++) {
      if (rewrite === undefined) canonicalizeScalars(items, value[i]);
      else value[i] = rewrite(value[i]);
    }
    return;
  }
  const object = value as Record<string, unknown>;
  const rest = typeof schema.additionalProperties === 'object' ? schema.additionalProperties : undefined;
  for (const key of Object.keys(object)) {
    const properties = schema.properties;
    const member = properties && Object.hasOwn(properties, key) ? properties[key] : rest;
    if (member === undefined) continue;
    const rewrite = rewriteOf(member);
    if (rewrite === undefined) canonicalizeScalars(member, object[key]);
    else if (key !== '__proto__') object[key] = rewrite(object[key]);
  }
}

function rewriteOf(schema: Schema): Rewrite | undefined {
  const name = schema['x-coracle-name'];
  return name === undefined ? undefined : REWRITES.get(name.slice(name.lastIndexOf('.') + 1));
}

function reachesScalar(schema: Schema): boolean {
  const known = REACHES.get(schema);
  if (known !== undefined) return known;
  const visited = new Set<Schema>();
  const pending = [schema];
  let found = false;
  while (pending.length > 0 && !found) {
    const node = pending.pop()!;
    if (visited.has(node)) continue;
    visited.add(node);
    found = rewriteOf(node) !== undefined;
    pending.push(...childSchemas(node));
  }
  REACHES.set(schema, found);
  return found;
}

function rewriteQuantity(value: unknown): unknown {
  if (typeof value !== 'string' && typeof value !== 'number') return value;
  try {
    return formatQuantity(parseQuantity(String(value)));
  } catch {
    return value;
  }
}

function rewriteTime(value: unknown, decimals: number): unknown {
  if (typeof value !== 'string' || !isRfc3339(value)) return value;
  const fraction = /\.([0-9]+)/.exec(value)?.[1] ?? '';
  const seconds = new Date(Date.parse(value.replace(/\.[0-9]+/, ''))).toISOString().slice(0, 19);
  return decimals === 0 ? `${seconds}Z` : `${seconds}.${fraction.padEnd(decimals, '0').slice(0, decimals)}Z`;
}
