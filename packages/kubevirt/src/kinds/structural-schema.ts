/** Structural schemas, the dialect a CustomResourceDefinition is written in, of what the tables describe (`tables/*.json`). */

import { type Schema, UNSIGNED } from '@coracle/apimachinery/schema/schema';
import { builtinSchema } from '@coracle/apimachinery/types/builtin-types';
import { type Described, isObject, membersOf, readObjectText, readText, type Said } from './notation.ts';
import cdi from './tables/cdi.json' with { type: 'json' };
import coracle from './tables/coracle.json' with { type: 'json' };
import kubevirt from './tables/kubevirt.json' with { type: 'json' };
import kubevirtCr from './tables/kubevirt-cr.json' with { type: 'json' };
import machine from './tables/machine.json' with { type: 'json' };
import otherGroups from './tables/other-groups.json' with { type: 'json' };
import ssp from './tables/ssp.json' with { type: 'json' };

type Mutable<T> = { -readonly [K in keyof T]: T[K] };
type Members = Readonly<Record<string, Described>>;

/** Every named type, by its name. */
export const DEFINITIONS: Readonly<Record<string, Members>> = {
  ...machine,
  ...kubevirt,
  ...kubevirtCr,
  ...otherGroups,
  ...cdi,
  ...ssp,
  ...coracle,
};

const QUANTITY = {
  pattern:
    '^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))))?$',
  'x-kubernetes-int-or-string': true,
};
const ANY_OF: readonly Schema[] = [{ type: 'integer' }, { type: 'string' }];
const description = '';

/** The kinds of fields; a description takes the place of the empty one. */
const KINDS: Readonly<Record<string, Schema>> = {
  str: { type: 'string', description },
  bool: { type: 'boolean', description },
  int: { type: 'integer', format: 'int32', description },
  long: { type: 'integer', format: 'int64', description },
  // Go's uint and uint32: a structural schema shows no rule of the sign, but a negative one cannot be decoded.
  count: { type: 'integer', format: 'int32', [UNSIGNED]: true, description },
  float: { type: 'number', description },
  time: { type: 'string', description, format: 'date-time' },
  quantity: { anyOf: ANY_OF, description, ...QUANTITY },
  intOrString: { anyOf: ANY_OF, description, 'x-kubernetes-int-or-string': true },
  resourceList: { type: 'object', description, additionalProperties: { anyOf: ANY_OF, ...QUANTITY } },
  flag: { type: 'object', description },
  any: { type: 'object', description, 'x-kubernetes-preserve-unknown-fields': true },
};
const PACKAGES: Readonly<Record<string, string>> = {
  core: 'io.k8s.api.core.v1',
  meta: 'io.k8s.apimachinery.pkg.apis.meta.v1',
};
const INT_OR_STRING = [
  'io.k8s.apimachinery.pkg.api.resource.Quantity',
  'io.k8s.apimachinery.pkg.util.intstr.IntOrString',
];

/** Members of a built-in node that a CustomResourceDefinition does not know or does not publish. */
const BUILTIN_ONLY = new Set([
  'x-coracle-name',
  'x-coracle-proto',
  'x-coracle-proto-inline',
  'x-kubernetes-patch-merge-key',
  'x-kubernetes-patch-strategy',
]);

const definitions = new Map<string, Schema>();

/**
 * The structural schema of a type by its name in the tables. Equal names give the same node, so a type used in many places is
 * one node in memory. Property maps have no prototype: a client's field called `constructor` must not be found in them.
 * @throws Error for a type without an entry, or a built-in one that holds itself
 */
export function definitionSchema(name: string): Schema {
  const known = definitions.get(name);
  if (known !== undefined) return known;
  const schema = objectSchema(definitionOf(name));
  definitions.set(name, schema);
  return schema;
}

function definitionOf(name: string): Members {
  const definition = DEFINITIONS[name];
  if (definition === undefined) throw new Error(`no type ${name} in kinds/tables`);
  return definition;
}

/** The text that an object has of itself, or of the definition that it builds on. */
const textOf = (object: Members): string =>
  (object[''] as string | undefined) ?? textOf(definitionOf(object['+'] as string));

function objectSchema(object: Members): Schema {
  const members = membersOf(object, definitionOf);
  const required = members.filter(([, , isRequired]) => isRequired).map(([name]) => name);
  const properties: Record<string, Schema> = Object.create(null);
  for (const [name, member] of members) properties[name] = schemaOf(member);
  return finish(
    {
      type: 'object',
      ...(required.length > 0 && { required }),
      ...(members.length > 0 && { properties }),
      description,
    },
    readObjectText(textOf(object)),
  );
}

function schemaOf(described: Described): Schema {
  if (isObject(described)) return objectSchema(described);
  const [text, item] = typeof described === 'string' ? [described] : (described as readonly [string, Described]);
  const said = readText(text);
  const { wrapper, kind } = said;
  if (wrapper === undefined) return text in DEFINITIONS ? definitionSchema(text) : finish(kindSchema(kind), said);
  const items = schemaOf(item ?? kind);
  if (wrapper === '{}') return finish({ type: 'object', additionalProperties: items, description }, said);
  const [listType, keys] = wrapper.slice(1, -1).split(':');
  return finish(
    {
      type: 'array',
      items,
      description,
      ...(listType && { 'x-kubernetes-list-type': listType }),
      ...(keys && { 'x-kubernetes-list-map-keys': keys.split(',') }),
    },
    said,
  );
}

function kindSchema(kind: string): Schema {
  const [alias = '', name] = kind.split('.');
  if (name !== undefined) return crdForm(builtinSchema(`${PACKAGES[alias]}.${name}`), []);
  return KINDS[kind] ?? definitionSchema(kind);
}

function finish(node: object, { description, marks }: Said): Schema {
  const { description: _, ...bare } = node as Schema;
  return { ...(description === undefined ? bare : { ...node, description }), ...marks };
}

/** The values that a field may have, by the name of its type and the path to it. */
export function valuesOf<T extends string = string>(type: string, ...path: readonly string[]): readonly T[] {
  const field = path.reduce<Described>((members, name) => (members as Members)[name]!, definitionOf(type));
  return readText(field as string).values as readonly T[];
}

/** A built-in type written out in full, as a CustomResourceDefinition must hold it. */
function crdForm(node: Schema, above: readonly Schema[]): Mutable<Schema> {
  const name = node['x-coracle-name'];
  if (above.includes(node)) throw new Error(`${name ?? 'a type'} holds itself and cannot be written out`);
  if (name !== undefined && INT_OR_STRING.includes(name)) return { anyOf: ANY_OF, 'x-kubernetes-int-or-string': true };
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
