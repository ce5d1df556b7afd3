import type { Pace, Steps } from '../meta/steps.ts';
import { childSchemas } from './resolve-definitions.ts';
import type { Schema } from './schema.ts';

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

/** Whether what is sought lies at or below a schema without cycles, as those of definitions are. */
export interface TreeSearch {
  (schema: Schema): boolean;
  /** Finds that out for all nodes of a schema, in steps: asking takes no time then. */
  look(schema: Schema, pace: Pace): Steps<boolean>;
}

/** As `createReach`, for trees: leaves, which most nodes are, are not worth remembering. */
export function createTreeSearch(isSought: (schema: Schema) => boolean): TreeSearch {
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
  function* look(schema: Schema, pace: Pace): Steps<boolean> {
    if (isLeafSchema(schema)) return isSought(schema);
    let found = isSought(schema);
    for (const below of yield* schemasBelow(schema, pace)) {
      if (pace.due()) yield;
      found = (isLeafSchema(below) ? isSought(below) : yield* look(below, pace)) || found;
    }
    known.set(schema, found);
    return found;
  }
  return Object.assign(search, { look });
}

/** The schemas that members and items of a node's values have. Of a large node, naming them is a step of its own. */
export function* schemasBelow(
  { properties = {}, items, additionalProperties: rest }: Schema,
  pace: Pace,
): Steps<readonly Schema[]> {
  const names = Object.keys(properties);
  if (pace.due(names.length >> 2)) yield;
  const below = names.map((name) => properties[name]!);
  if (items !== undefined) below.push(items);
  if (typeof rest === 'object') below.push(rest);
  return below;
}
