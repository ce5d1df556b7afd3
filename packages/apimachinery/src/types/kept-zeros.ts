/**
 * Optional scalars whose zero value says something: Go holds them by pointer (or always writes them), so `false`, 0 and
 * '' appear in JSON. Of every other optional scalar the zero is left out (omitempty): who sends `paused: false` reads a
 * Deployment without `paused`. Go's protobuf writes those zeros too, set or not: without this list a typed client's
 * `hostNetwork: false` or `nodeName: ''`, which it never set, would look like a choice.
 *
 * `kept-zeros.json` has them by `package.version.Type`; `-field` is a required one whose zero Go leaves out all the same.
 * Facts of the Go types of Kubernetes 1.36.
 */
import type { Schema } from '../schema/schema.ts';
import table from './kept-zeros.json' with { type: 'json' };

let parsed: ReadonlyMap<string, ReadonlySet<string>> | undefined;

/** The table by type: `core.v1.PodSpec` -> fields, those left out with their sign. */
export function keptZeros(): ReadonlyMap<string, ReadonlySet<string>> {
  parsed ??= new Map(Object.entries(table).map(([type, fields]) => [type, new Set(fields)]));
  return parsed;
}

/** `io.k8s.api.core.v1.PodSpec` -> `core.v1.PodSpec`. */
export const tableNameOf = (definition: string): string => definition.split('.').slice(-3).join('.');

/** The scalars of `schema` whose zero value stays in JSON: required ones and those of the table, as it says. */
export function keepsZero(schema: Schema): (property: string) => boolean {
  const required = new Set(schema.required);
  const kept = keptZeros().get(tableNameOf(schema['x-coracle-name'] ?? ''));
  return (property) => (required.has(property) && kept?.has(`-${property}`) !== true) || kept?.has(property) === true;
}
