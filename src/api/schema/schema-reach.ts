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

/** Calls `visit` for the schemas that members and items of a node's values have. */
export function* eachBelow(
  { properties, items, additionalProperties: rest }: Schema,
  pace: Pace,
  visit: (schema: Schema, pace: Pace) => Steps<void>,
): Steps<void> {
  if (pace.due()) yield;
  if (items !== undefined) yield* visit(items, pace);
  if (typeof rest === 'object') yield* visit(rest, pace);
  for (const name of Object.keys(properties ?? {})) yield* visit(properties![name]!, pace);
}
