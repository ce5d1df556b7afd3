/** Empty lists and maps of built-in kinds: Go's omitempty leaves them out, so nobody ever reads them back. */
import { keysOfLarge } from '../meta/small.ts';
import { Pace, type Steps } from '../meta/steps.ts';
import { KEPT_EMPTY, type Schema } from './schema.ts';

type JsonObject = Record<string, unknown>;

/**
 * Removes, in place, the members of built-in types that hold an empty list or map, but those that are required or
 * `KEPT_EMPTY`. Empty structs (`emptyDir: {}`) and empty items stay: their presence says something.
 */
export function dropEmpty(schema: Schema, value: unknown): void {
  if (containsEmpty(value)) drop(schema, value);
}

/** The same, with the search for something empty in steps, for large objects. */
export function* dropEmptySteps(schema: Schema, value: unknown): Steps<void> {
  if (!(yield* containsEmptySteps(value, new Pace()))) return;
  yield;
  drop(schema, value);
}

/** Found out without the schema: most objects have nothing empty, and this runs on every write. */
function containsEmpty(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (Array.isArray(value)) {
    for (const item of value) if (typeof item === 'object' && containsEmpty(item)) return true;
    return value.length === 0;
  }
  let empty = true;
  for (const key in value) {
    empty = false;
    const member = (value as JsonObject)[key];
    if (typeof member === 'object' && containsEmpty(member)) return true;
  }
  return empty;
}

function* containsEmptySteps(value: unknown, pace: Pace): Steps<boolean> {
  const keys = keysOfLarge(value);
  if (keys === undefined) return containsEmpty(value);
  const list = Array.isArray(value) ? value : undefined;
  const count = list ? list.length : keys.length;
  if (pace.due(keys.length)) yield;
  for (let i = 0; i < count; i++) {
    const member: unknown = list ? list[i] : (value as JsonObject)[keys[i]!];
    if (typeof member === 'object' && (yield* containsEmptySteps(member, pace))) return true;
    if (pace.due()) yield;
  }
  return false;
}

interface Plan {
  readonly members: ReadonlyMap<string, { readonly schema: Schema; readonly drops: boolean }>;
  readonly rest: Schema | undefined;
}
const PLANS = new WeakMap<Schema, Plan>();

function planOf(schema: Schema): Plan {
  let plan = PLANS.get(schema);
  if (plan === undefined) {
    const kept = schema[KEPT_EMPTY];
    const required = new Set(schema.required);
    const members = Object.entries(schema.properties ?? {})
      .filter(([, member]) => member.type === 'array' || member.type === 'object')
      .map(
        ([key, member]) =>
          [key, { schema: member, drops: isCollection(member) && !required.has(key) && !kept?.has(key) }] as const,
      );
    const rest = typeof schema.additionalProperties === 'object' ? schema.additionalProperties : undefined;
    plan = { members: new Map(members), rest: rest?.type === 'object' || rest?.type === 'array' ? rest : undefined };
    PLANS.set(schema, plan);
  }
  return plan;
}

/** A list or a map of values of one type; structs and objects of any content are neither. */
const isCollection = (schema: Schema): boolean =>
  schema.type === 'array' || (schema.properties === undefined && typeof schema.additionalProperties === 'object');

function drop(schema: Schema, value: unknown): void {
  if (typeof value !== 'object' || value === null) return;
  if (Array.isArray(value)) {
    const { items } = schema;
    if (items?.type !== 'object' && items?.type !== 'array') return;
    for (const item of value) drop(items, item);
    return;
  }
  const { members, rest } = planOf(schema);
  if (members.size === 0 && rest === undefined) return;
  const object = value as JsonObject;
  for (const key of Object.keys(object)) {
    const member = object[key];
    if (typeof member !== 'object' || member === null) continue;
    const known = members.get(key);
    if (known === undefined) {
      if (rest !== undefined) drop(rest, member);
    } else if (known.drops && isEmpty(member)) delete object[key];
    else drop(known.schema, member);
  }
}

function isEmpty(value: object): boolean {
  if (Array.isArray(value)) return value.length === 0;
  for (const _ in value) return false;
  return true;
}
