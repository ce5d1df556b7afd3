/**
 * The built-in types as schemas, decoded on first use from `types.generated.json` (grammar:
 * tools/descriptors/README.md). Named types are shared nodes, so the graph is cyclic where the API is
 * (JSONSchemaProps): do not walk it without a visited set.
 *
 * `required` repeats the published lists, which name every field that Go always writes, not what a client must send:
 * publish it, never reject by it.
 */
import type { GroupVersionKind } from '../meta/gvk.ts';
import { FORMS, type Forms, OMITTED, type Schema, ZEROS } from '../schema/schema.ts';
import { keepsEmpty, keepsZero } from './kept-zeros.ts';
import table from './types.generated.json' with { type: 'json' };
import { zeroValuesOf } from './zero-values.ts';

type Mutable<T> = { -readonly [K in keyof T]: T[K] };
type SchemaNode = Mutable<Schema>;

const packages = new Map<string, string>(Object.entries(table.packages));
const aliasOf = new Map<string, string>([...packages].map(([alias, pkg]) => [pkg, alias]));
const texts = new Map<string, Readonly<Record<string, string>>>(Object.entries(table.types));
const decoded = new Map<string, SchemaNode>();

/**
 * The schema of a definition, by its full name (`io.k8s.api.core.v1.Pod`). The same name gives the same node.
 * @throws Error when the table has no such type.
 */
export function builtinSchema(name: string): Schema {
  const known = decoded.get(name);
  if (known !== undefined) return known;
  const text = textOf(name);
  if (text === undefined) throw new Error(`no built-in type is called ${name}`);
  const node: SchemaNode = { 'x-coracle-name': name };
  // Registered before its fields are read: a type may hold itself.
  decoded.set(name, node);
  if (text.startsWith('!')) Object.assign(node, nodeIn(SCALARS, text.slice(1)));
  else decodeFields(node, { text, pkg: name.slice(0, name.lastIndexOf('.')) });
  const zeros = zeroValuesOf(name, node.properties ?? {});
  if (zeros !== undefined) node[ZEROS] = zeros;
  const forms = formsOf(name);
  if (forms !== undefined) node[FORMS] = forms;
  if (node.properties !== undefined) node[OMITTED] = omittedOf(node);
  return node;
}

export const hasBuiltinType = (name: string): boolean => textOf(name) !== undefined;

/** Full names of all definitions, sorted within their package. */
export const builtinTypeNames = (): string[] =>
  [...texts].flatMap(([alias, members]) => Object.keys(members).map((short) => `${packages.get(alias)}.${short}`));

/**
 * The group-version-kind that a definition declares; `everyGroup` is true for the options kinds (DeleteOptions,
 * WatchEvent) that each group version repeats under its own name.
 */
export function builtinKindOf(name: string): (GroupVersionKind & { readonly everyGroup: boolean }) | undefined {
  const head = textOf(name)?.split('|', 1)[0] ?? '';
  const hash = head.indexOf('#');
  if (hash < 0) return undefined;
  const gvk = head.slice(hash + 1);
  if (gvk.startsWith('*')) return { group: '', version: 'v1', kind: gvk.slice(1), everyGroup: true };
  const [group = '', version = '', kind = ''] = gvk.split('/');
  return { group, version, kind, everyGroup: false };
}

let byKind: ReadonlyMap<string, string> | undefined;

/** The definition name of a kind: `Pod` of `v1` -> `io.k8s.api.core.v1.Pod`. */
export function builtinTypeName(gvk: GroupVersionKind): string | undefined {
  byKind ??= new Map(
    builtinTypeNames().flatMap((name) => {
      const declared = builtinKindOf(name);
      return declared === undefined ? [] : [[`${declared.group}/${declared.version}/${declared.kind}`, name] as const];
    }),
  );
  return byKind.get(`${gvk.group}/${gvk.version}/${gvk.kind}`);
}

function textOf(name: string): string | undefined {
  const dot = name.lastIndexOf('.');
  const members = texts.get(aliasOf.get(name.slice(0, dot)) ?? '');
  const short = name.slice(dot + 1);
  return members !== undefined && Object.hasOwn(members, short) ? members[short] : undefined;
}

/** The types of apiextensions that are a schema or something else. */
function formsOf(name: string): Forms | undefined {
  const or = name.indexOf('JSONSchemaPropsOr');
  if (or < 0) return undefined;
  const object = builtinSchema(name.slice(0, or + 'JSONSchemaProps'.length));
  switch (name.slice(or + 'JSONSchemaPropsOr'.length)) {
    case 'Array':
      return { object, list: { type: 'array', items: object } };
    case 'StringArray':
      return { object, list: { type: 'array', items: { type: 'string' } } };
    default:
      return { object };
  }
}

/** What is neither scalar nor collection is a struct, whose presence says something. */
function omittedOf(node: Schema): ReadonlySet<string> {
  const keepsScalar = keepsZero(node);
  const keepsCollection = keepsEmpty(node);
  const omitted = Object.entries(node.properties ?? {}).filter(([name, { type, ...property }]) => {
    if (type === 'array' || typeof property.additionalProperties === 'object') return !keepsCollection(name);
    // Bytes are a list to Go; a time is a struct.
    if (property.format === 'byte') return !keepsCollection(name);
    return type !== undefined && type !== 'object' && property.format !== 'date-time' && !keepsScalar(name);
  });
  return new Set(omitted.map(([name]) => name));
}

/** Named types that are no structs. JSON may give a bare number for a text; defaulting turns it into the canonical text. */
const SCALARS: Readonly<Record<string, SchemaNode>> = {
  quantity: { 'x-kubernetes-int-or-string': true, format: 'quantity' },
  intorstring: { 'x-kubernetes-int-or-string': true, format: 'int-or-string' },
  time: { type: 'string', format: 'date-time' },
  microtime: { type: 'string', format: 'date-time' },
  object: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
  any: { 'x-kubernetes-preserve-unknown-fields': true },
};

/** Types that have no name, by their sign. */
const PLAIN: Readonly<Record<string, SchemaNode>> = {
  s: { type: 'string' },
  y: { type: 'string', format: 'byte' },
  i: { type: 'integer', format: 'int32' },
  l: { type: 'integer', format: 'int64' },
  d: { type: 'number', format: 'double' },
  b: { type: 'boolean' },
  o: { type: 'object' },
};

/** A node of its own, as the table has it. */
function nodeIn(table: Readonly<Record<string, SchemaNode>>, kind: string): SchemaNode {
  if (!Object.hasOwn(table, kind)) throw new Error(`types.generated.json: unknown kind ${kind}`);
  return { ...table[kind] };
}

function decodeFields(node: SchemaNode, { text, pkg }: { text: string; pkg: string }): void {
  const bar = text.indexOf('|');
  // No prototype: a client's field called `constructor` or `__proto__` must not be found here.
  const properties: Record<string, SchemaNode> = Object.create(null);
  const proto: Record<string, number> = Object.create(null);
  const inline: Record<string, readonly number[]> = Object.create(null);
  const required: string[] = [];
  for (const field of text.slice(bar + 1).split(' ')) {
    if (field === '') continue;
    const colon = field.indexOf(':');
    const equals = field.lastIndexOf('=');
    const optional = field[colon - 1] !== '!';
    const name = field.slice(0, optional ? colon : colon - 1);
    if (!optional) required.push(name);
    properties[name] = decodeField(field.slice(colon + 1, equals < colon ? undefined : equals), pkg);
    if (equals < colon) continue;
    const path = Array.from(field.slice(equals + 1).split('.'), Number);
    if (path.length === 1) proto[name] = path[0]!;
    else inline[name] = path;
  }
  node.type = 'object';
  node.properties = properties;
  if (required.length > 0) node.required = required;
  if (text.startsWith('t')) node['x-kubernetes-map-type'] = 'atomic';
  node['x-coracle-proto'] = proto;
  if (Object.keys(inline).length > 0) node['x-coracle-proto-inline'] = inline;
}

/** `[@Container;m:name;k:name;p:merge`: a kind and its modifiers. */
function decodeField(text: string, pkg: string): SchemaNode {
  const [kind = '', ...mods] = text.split(';');
  const bare = decodeKind(kind, pkg);
  if (mods.length === 0) return bare;
  const node: SchemaNode = { ...bare };
  for (const mod of mods) {
    const value = mod.slice(2);
    switch (mod[0]) {
      case 'a':
        node['x-kubernetes-list-type'] = 'atomic';
        break;
      case 's':
        node['x-kubernetes-list-type'] = 'set';
        break;
      case 'm':
        node['x-kubernetes-list-type'] = 'map';
        node['x-kubernetes-list-map-keys'] = value.split(',');
        break;
      case 'k':
        node['x-kubernetes-patch-merge-key'] = value;
        break;
      case 'p':
        node['x-kubernetes-patch-strategy'] = value;
        break;
      case 't':
        node['x-kubernetes-map-type'] = value as 'atomic' | 'granular';
        break;
      case 'd':
        node.default = value;
        break;
      default:
        throw new Error(`types.generated.json: unknown modifier ${mod}`);
    }
  }
  return node;
}

function decodeKind(kind: string, pkg: string): SchemaNode {
  const rest = kind.slice(1);
  switch (kind[0]) {
    case '[':
      return { type: 'array', items: decodeKind(rest, pkg) };
    case '{':
      return { type: 'object', additionalProperties: decodeKind(rest, pkg) };
    case '@': {
      const dot = rest.indexOf('.');
      return builtinSchema(dot < 0 ? `${pkg}.${rest}` : `${packages.get(rest.slice(0, dot))}.${rest.slice(dot + 1)}`);
    }
    default:
      return nodeIn(PLAIN, kind);
  }
}
