/**
 * Optional lists and maps that Go writes even when they are empty. Every other optional one is left out then
 * (omitempty): who sends `secrets: []` reads an object without `secrets`.
 *
 * `kept-empty.json` has them by `package.version.Type`; `-field` is a required one that Go leaves out all the same. Facts of
 * the Go types of Kubernetes 1.36.
 */
import type { Schema } from '../schema/schema.ts';
import table from './kept-empty.json' with { type: 'json' };
import { tableNameOf } from './kept-zeros.ts';

/** Empty ownership is no state but a request to lose it, which whoever tracks ownership has to see. */
const REQUESTS = { 'meta.v1.ObjectMeta': ['managedFields'] };

let parsed: ReadonlyMap<string, ReadonlySet<string>> | undefined;

/** The table by type: `rbac.v1.Role` -> fields. */
export function keptEmpties(): ReadonlyMap<string, ReadonlySet<string>> {
  parsed ??= new Map(Object.entries({ ...table, ...REQUESTS }).map(([type, fields]) => [type, new Set(fields)]));
  return parsed;
}

/** The lists and maps of `schema` that stay when they are empty: required ones and those of the table, as it says. */
export function keepsEmpty(schema: Schema): (property: string) => boolean {
  const required = new Set(schema.required);
  const kept = keptEmpties().get(tableNameOf(schema['x-coracle-name'] ?? ''));
  return (property) => (required.has(property) && kept?.has(`-${property}`) !== true) || kept?.has(property) === true;
}
