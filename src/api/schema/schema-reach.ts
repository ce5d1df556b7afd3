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
    const pending = [schema];
    let found = false;
    while (pending.length > 0 && !found) {
      const node = pending.pop()!;
      if (visited.has(node)) continue;
      visited.add(node);
      found = isSought(node) || known.get(node) === true;
      pending.push(...childSchemas(node));
    }
    if (found) known.set(schema, true);
    else for (const node of visited) known.set(node, false);
    return found;
  };
}
