/**
 * What Go writes for a field that nobody sent: numbers, booleans and texts without `omitempty` are 0, false and '',
 * structs (`status`, `template.metadata`) are never left out, and lists, maps, pointers and times without it are null. So
 * they are in every object that kube-apiserver shows, a JSON patch may reach below them, and a client need not send them
 * although the published types call them required.
 *
 * `zero-values.json` has them by `package.version.Type`; `field?` is one that Go shows as null. Facts of the Go types and
 * the validation of Kubernetes 1.36. Not every such field is here: one whose zero or null upstream refuses stays required, and so says its name.
 */
import { zeroOf } from '../schema/defaults.ts';
import type { Schema } from '../schema/schema.ts';
import { tableNameOf } from './kept-zeros.ts';
import table from './zero-values.json' with { type: 'json' };

const fieldsByType = new Map<string, readonly string[]>(Object.entries(table));

/**
 * The zero values of a definition (`io.k8s.api.apps.v1.Deployment`), by property; undefined when it has none.
 * @throws Error when the table names a property that the type does not have.
 */
export function zeroValuesOf(
  definition: string,
  properties: Readonly<Record<string, Schema>>,
): Readonly<Record<string, unknown>> | undefined {
  const fields = fieldsByType.get(tableNameOf(definition));
  if (fields === undefined) return undefined;
  const zeros: Record<string, unknown> = Object.create(null);
  for (const field of fields) {
    const isNull = field.endsWith('?');
    const name = isNull ? field.slice(0, -1) : field;
    const property = properties[name];
    if (property === undefined) throw new Error(`zero-values.ts: ${definition} has no ${name}`);
    zeros[name] = isNull ? null : zeroOf(property);
  }
  return zeros;
}
