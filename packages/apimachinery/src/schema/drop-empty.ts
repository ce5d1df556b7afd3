/**
 * What is empty in a built-in kind in the sense of Go's omitempty (`false`, 0, '', a list or map without anything in it)
 * and left out by it, so that nobody ever reads it back.
 */
import { FORMS, formOf, OMITTED, restSchema, type Schema } from './schema.ts';
import { oncePerSchema } from './schema-reach.ts';

type JsonObject = Record<string, unknown>;

/**
 * Removes, in place, the members of built-in types that are empty and `OMITTED` then. Empty structs (`emptyDir: {}`) and
 * empty items stay: their presence says something.
 */
export function dropEmpty(schema: Schema, value: unknown): void {
  if (containsEmpty(value)) drop(schema, value);
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
    if (typeof member === 'object' ? containsEmpty(member) : isZero(member)) return true;
  }
  return empty;
}

const isZero = (value: unknown): boolean => value === '' || value === false || value === 0;

interface Plan {
  /** What may be left out, and what may hold something that may. */
  readonly members: ReadonlyMap<string, { readonly schema: Schema; readonly drops: boolean }>;
  readonly rest: Schema | undefined;
}
const planOf = oncePerSchema((schema): Plan => {
  const omitted = schema[OMITTED];
  const members = Object.entries(schema.properties ?? {})
    .filter(([key, member]) => mayHold(member) || omitted?.has(key))
    .map(([key, member]) => [key, { schema: member, drops: omitted?.has(key) === true }] as const);
  const rest = restSchema(schema);
  return { members: new Map(members), rest: rest && mayHold(rest) ? rest : undefined };
});

const mayHold = (schema: Schema): boolean =>
  schema.type === 'array' || schema.type === 'object' || schema[FORMS] !== undefined;

function drop(schema: Schema, value: unknown): void {
  if (typeof value !== 'object' || value === null) return;
  if (schema[FORMS] !== undefined) {
    const form = formOf(schema[FORMS], value);
    if (form !== undefined) drop(form, value);
    return;
  }
  if (Array.isArray(value)) {
    const { items } = schema;
    if (items !== undefined && mayHold(items)) for (const item of value) drop(items, item);
    return;
  }
  const plan = planOf(schema);
  if (plan.members.size === 0 && plan.rest === undefined) return;
  const object = value as JsonObject;
  for (const key of Object.keys(object)) {
    const below = dropMember(plan, object, key);
    if (below !== undefined) drop(below, object[key]);
  }
}

/** Drops the member where it is one that goes; else returns the schema to go on with below it, if there is one. */
function dropMember({ members, rest }: Plan, object: JsonObject, key: string): Schema | undefined {
  const member = object[key];
  if (typeof member !== 'object') {
    if (isZero(member) && members.get(key)?.drops) delete object[key];
    return undefined;
  }
  if (member === null) return undefined;
  const known = members.get(key);
  if (known === undefined) return rest;
  if (!known.drops || !isEmpty(member)) return known.schema;
  delete object[key];
  return undefined;
}

function isEmpty(value: object): boolean {
  if (Array.isArray(value)) return value.length === 0;
  for (const _ in value) return false;
  return true;
}
