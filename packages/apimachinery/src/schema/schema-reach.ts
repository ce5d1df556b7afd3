import type { Schema } from './schema.ts';

/**
 * `make`, asked once for each schema: what it makes is kept for as long as the schema lives. Schemas may be cyclic, so `make`
 * asks for what lies below a node when a value first reaches it.
 */
export function oncePerSchema<T>(make: (schema: Schema) => T): (schema: Schema) => T {
  const known = new WeakMap<Schema, T>();
  return (schema) => {
    let made = known.get(schema);
    if (made === undefined) {
      made = make(schema);
      known.set(schema, made);
    }
    return made;
  };
}

/**
 * Makes the question whether a node that `isSought` lies at or below a schema, cycles included. An answer is kept for as
 * long as its schema lives; one "no" answers for every node below.
 */
export function createReach(isSought: (schema: Schema) => boolean): (schema: Schema) => boolean {
  const known = new WeakMap<Schema, boolean>();
  return (schema) => {
    const answer = known.get(schema);
    if (answer !== undefined) return answer;
    const visited = new Set<Schema>();
    const pending: Reached[] = [{ node: schema, from: undefined }];
    let found: Reached | undefined;
    while (pending.length > 0 && found === undefined) {
      const reached = pending.pop()!;
      const { node } = reached;
      if (visited.has(node)) continue;
      visited.add(node);
      if (isSought(node) || known.get(node) === true) found = reached;
      else for (const child of childSchemas(node)) pending.push({ node: child, from: reached });
    }
    // It lies below everything on the way to it.
    for (let at = found; at !== undefined; at = at.from) known.set(at.node, true);
    if (found === undefined) for (const node of visited) known.set(node, false);
    return found !== undefined;
  };
}

interface Reached {
  readonly node: Schema;
  readonly from: Reached | undefined;
}

/** True for a node that says nothing of members or items: what is asked about it, it answers itself. */
export const isLeafSchema = ({ properties, items, additionalProperties }: Schema): boolean =>
  properties === undefined && items === undefined && typeof additionalProperties !== 'object';

/**
 * As `createReach`, for schemas without cycles, as those of definitions are: leaves, which most nodes are, are not worth
 * remembering.
 */
export function createTreeSearch(isSought: (schema: Schema) => boolean): (schema: Schema) => boolean {
  const known = new WeakMap<Schema, boolean>();
  const search = (schema: Schema): boolean => {
    if (isLeafSchema(schema)) return isSought(schema);
    let found = known.get(schema);
    if (found === undefined) {
      const { items, additionalProperties: rest, properties = {} } = schema;
      found =
        isSought(schema) ||
        (items !== undefined && search(items)) ||
        (typeof rest === 'object' && search(rest)) ||
        Object.keys(properties).some((name) => search(properties[name]!));
      known.set(schema, found);
    }
    return found;
  };
  return search;
}

/** The child schemas of a node, by the keyword that holds them. For walks; keep a visited set. */
export function* childSchemas(schema: Schema): Generator<Schema> {
  if (schema.properties) for (const key of Object.keys(schema.properties)) yield schema.properties[key]!;
  if (schema.items) yield schema.items;
  if (typeof schema.additionalProperties === 'object') yield schema.additionalProperties;
  for (const list of ['allOf', 'anyOf', 'oneOf'] as const) yield* schema[list] ?? [];
  if (schema.not) yield schema.not;
}
