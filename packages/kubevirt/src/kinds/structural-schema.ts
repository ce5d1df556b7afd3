/** TypeBox values as structural schemas: the dialect a CustomResourceDefinition is written in. */

import { type Schema, UNSIGNED } from '@coracle/apimachinery/schema/schema';
import { builtinSchema } from '@coracle/apimachinery/types/builtin-types';
import type { TSchema } from 'typebox';
import { BUILTIN } from './fields.ts';

type Mutable<T> = { -readonly [K in keyof T]: T[K] };
type Node = Readonly<Record<string, unknown>>;

const QUANTITY = 'io.k8s.apimachinery.pkg.api.resource.Quantity';
const INT_OR_STRING = 'io.k8s.apimachinery.pkg.util.intstr.IntOrString';

/** Members of a built-in node that a CustomResourceDefinition does not know or does not publish. */
const BUILTIN_ONLY = new Set([
  'x-coracle-name',
  'x-coracle-proto',
  'x-coracle-proto-inline',
  'x-kubernetes-patch-merge-key',
  'x-kubernetes-patch-strategy',
]);

const converted = new WeakMap<object, Schema>();

/**
 * The structural schema of a TypeBox value. Equal inputs give the same node, so a type used in many places is one
 * node in memory. Property maps have no prototype: a client's field called `constructor` must not be found in them.
 * @throws Error for a built-in type without an entry in the built-in table, or one that holds itself
 */
export function toStructuralSchema(typebox: TSchema): Schema {
  const known = converted.get(typebox);
  if (known !== undefined) return known;
  const schema = convert(typebox as unknown as Node);
  converted.set(typebox, schema);
  return schema;
}

function convert(node: Node): Schema {
  const out: Record<string | symbol, unknown> = {};
  const builtinName = node[BUILTIN];
  if (UNSIGNED in node) out[UNSIGNED] = true;
  if (typeof builtinName === 'string') Object.assign(out, crdForm(builtinSchema(builtinName), []));
  // TypeBox keeps its own marks in members that are not enumerable; these loops do not see them.
  for (const [key, value] of Object.entries(node)) {
    switch (key) {
      case BUILTIN:
        break;
      case 'properties':
        if (Object.keys(value as Node).length > 0) out[key] = mapValues(value as Record<string, TSchema>);
        break;
      case 'patternProperties':
        out['additionalProperties'] = toStructuralSchema(Object.values(value as Record<string, TSchema>)[0]!);
        break;
      case 'items':
        out[key] = toStructuralSchema(value as TSchema);
        break;
      default:
        out[key] = value;
    }
  }
  return out as Schema;
}

function mapValues(properties: Readonly<Record<string, TSchema>>): Record<string, Schema> {
  const out: Record<string, Schema> = Object.create(null);
  for (const [name, member] of Object.entries(properties)) out[name] = toStructuralSchema(member);
  return out;
}

/** A built-in type written out in full, as a CustomResourceDefinition must hold it. */
function crdForm(node: Schema, above: readonly Schema[]): Mutable<Schema> {
  if (above.includes(node))
    throw new Error(`${node['x-coracle-name'] ?? 'a type'} holds itself and cannot be written out`);
  if (node['x-coracle-name'] === QUANTITY) return intOrString();
  if (node['x-coracle-name'] === INT_OR_STRING) return intOrString();
  const path = [...above, node];
  const out: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(node)) {
    if (BUILTIN_ONLY.has(key)) continue;
    if (key === 'properties') {
      const properties: Record<string, Schema> = Object.create(null);
      for (const [name, member] of Object.entries(value as Record<string, Schema>))
        properties[name] = crdForm(member, path);
      out[key] = properties;
    } else if (key === 'items' || (key === 'additionalProperties' && typeof value === 'object')) {
      out[key] = crdForm(value as Schema, path);
    } else {
      out[key] = value;
    }
  }
  return out as Mutable<Schema>;
}

const intOrString = (): Mutable<Schema> => ({
  anyOf: [{ type: 'integer' }, { type: 'string' }],
  'x-kubernetes-int-or-string': true,
});
