/**
 * Optional members that Go writes in JSON while they are `false`, 0, '' or empty. Every other optional one is left out then
 * (omitempty): who sends `paused: false` or `secrets: []` reads an object without it. Protobuf has those zeros, too, set or not:
 * without these lists a typed client's `hostNetwork: false`, which it never set, would look like a choice.
 *
 * `kept-zeros.json` has the scalars by `package.version.Type`, `kept-empty.json` the lists and maps; `-field` is a required
 * one that Go leaves out all the same. Facts of the Go types of Kubernetes 1.36.
 */
import type { Schema } from '../schema/schema.ts';
import empties from './kept-empty.json' with { type: 'json' };
import zeros from './kept-zeros.json' with { type: 'json' };

/** Empty ownership is no state but a request to lose it, which whoever tracks ownership has to see. */
const REQUESTS = { 'meta.v1.ObjectMeta': ['managedFields'] };

/** Fields by type, those left out with their sign. */
type Kept = ReadonlyMap<string, ReadonlySet<string>>;

/** Reads a table when it is first asked for. */
function reading(table: Readonly<Record<string, readonly string[]>>): () => Kept {
  let kept: Kept | undefined;
  return () => {
    kept ??= new Map(Object.entries(table).map(([type, fields]) => [type, new Set(fields)]));
    return kept;
  };
}

/** The table of scalars: `core.v1.PodSpec` -> fields. */
export const keptZeros = reading(zeros);
/** The table of lists and maps: `rbac.v1.Role` -> fields. */
export const keptEmpties = reading({ ...empties, ...REQUESTS });

/** `io.k8s.api.core.v1.PodSpec` -> `core.v1.PodSpec`. */
export const tableNameOf = (definition: string): string => definition.split('.').slice(-3).join('.');

const keeps =
  (table: () => Kept) =>
  (schema: Schema): ((property: string) => boolean) => {
    const required = new Set(schema.required);
    const kept = table().get(tableNameOf(schema['x-coracle-name'] ?? ''));
    return (property) => (required.has(property) && kept?.has(`-${property}`) !== true) || kept?.has(property) === true;
  };

/** The scalars of `schema` whose zero value stays in JSON: required ones and those of the table, as it says. */
export const keepsZero = keeps(keptZeros);
/** The lists and maps of `schema` that stay when they are empty: required ones and those of the table, as it says. */
export const keepsEmpty = keeps(keptEmpties);
