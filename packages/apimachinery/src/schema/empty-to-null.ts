/**
 * Lists and maps of built-in kinds that Go always writes: in the store, which is protobuf upstream, an empty one is the
 * same as none, and comes back as null. Until then (in a dry run, to admission) `[]` is what it was.
 */

import { type Schema, ZEROS } from './schema.ts';
import { createReach, oncePerSchema } from './schema-reach.ts';

type JsonObject = Record<string, unknown>;
type Walk = (value: unknown) => void;

const isCollection = ({ type, additionalProperties }: Schema): boolean =>
  type === 'array' || typeof additionalProperties === 'object';

/** The members of a type that are null where they hold nothing. */
const nullables = ({ properties, [ZEROS]: zeros }: Schema): string[] =>
  zeros === undefined
    ? []
    : Object.keys(zeros).filter((key) => zeros[key] === null && isCollection(properties?.[key] ?? {}));

/** True for a kind in which there are such members: most have none. */
export const mayBecomeNull = createReach((schema) => nullables(schema).length > 0);

/** Puts, in place, null for what is empty and null when it was read back. Most kinds have no such member at all. */
export function emptyToNull(schema: Schema, value: unknown): void {
  if (mayBecomeNull(schema)) walkOf(schema)(value);
}

const walkOf = oncePerSchema(compile);

function compile(schema: Schema): Walk {
  const { properties = {}, items, additionalProperties } = schema;
  const emptied = nullables(schema);
  const below = Object.keys(properties).filter((key) => mayBecomeNull(properties[key]!));
  const rest =
    typeof additionalProperties === 'object' && mayBecomeNull(additionalProperties) ? additionalProperties : undefined;
  const item = items && mayBecomeNull(items) ? items : undefined;
  return (value) => {
    if (typeof value !== 'object' || value === null) return;
    if (Array.isArray(value)) {
      if (item !== undefined) for (const one of value) walkOf(item)(one);
      return;
    }
    const object = value as JsonObject;
    for (const key of emptied) if (isEmpty(object[key])) object[key] = null;
    for (const key of below) if (object[key] != null) walkOf(properties[key]!)(object[key]);
    if (rest !== undefined) for (const key of Object.keys(object)) walkOf(rest)(object[key]);
  };
}

function isEmpty(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return Array.isArray(value) ? value.length === 0 : Object.keys(value).length === 0;
}
