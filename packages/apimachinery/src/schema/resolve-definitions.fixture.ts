/**
 * Turns a swagger-like table of definitions (`$ref: '#/definitions/NAME'`) into shared Schema nodes. The graph may be
 * cyclic: nodes resolve their children when first read, after that they are ordinary members. So tests write down types.
 */
import type { Schema } from './schema.ts';

type Raw = Readonly<Record<string, unknown>>;
type Node = Record<string, unknown>;

const REF = '#/definitions/';
/** Keys of the table that are facts about the property, not about its schema. */
const SITE_ONLY = new Set(['$ref', 'protobuf', 'protobufInline']);

/**
 * Resolves all definitions. Every named node carries `x-coracle-name`; a `$ref` whose site has further keys gives a node
 * of its own (same children, same name, the site's keys on top).
 * @throws Error when a `$ref` read later names no definition (a defect of the table)
 */
export function resolveDefinitions(definitions: Readonly<Record<string, unknown>>): Map<string, Schema> {
  const resolved = new Map<string, Schema>();
  const lookup = (name: string): Schema => {
    const found = resolved.get(name);
    if (found === undefined) throw new Error(`schema definition ${name} does not exist`);
    return found;
  };
  for (const name of Object.keys(definitions)) {
    const node = inlineNode(definitions[name] as Raw, lookup);
    node['x-coracle-name'] = name;
    resolved.set(name, node as Schema);
  }
  return resolved;
}

type Lookup = (name: string) => Schema;

function resolve(raw: unknown, lookup: Lookup): Schema {
  const site = raw as Raw;
  const ref = refOf(site);
  if (ref === undefined) return inlineNode(site, lookup) as Schema;
  const target = lookup(ref);
  const own = Object.keys(site).filter(
    (key) => !SITE_ONLY.has(key) && !(key === 'allOf' && site['$ref'] === undefined),
  );
  if (own.length === 0) return target;
  // Reads the target's children through, so that an override resolves no more than the target itself does.
  const node: Node = {};
  for (const key of Object.keys(target)) {
    lazy(node, key, () => target[key as keyof Schema]);
  }
  for (const key of own) Object.defineProperty(node, key, plain(site[key]));
  return node as Schema;
}

/** The definition a site points at: `$ref`, or the OpenAPI v3 form `allOf: [{$ref}]` (which may carry a default). */
function refOf(site: Raw): string | undefined {
  let ref = site['$ref'];
  const all = site['allOf'];
  if (ref === undefined && Array.isArray(all) && all.length === 1 && site['properties'] === undefined) {
    ref = (all[0] as Raw)['$ref'];
  }
  return typeof ref === 'string' && ref.startsWith(REF) ? ref.slice(REF.length) : undefined;
}

function inlineNode(raw: Raw, lookup: Lookup): Node {
  const node: Node = {};
  for (const key of Object.keys(raw)) {
    const value = raw[key];
    switch (key) {
      case 'properties':
        lazy(node, key, () => resolveProperties(value as Raw, lookup));
        defineProtoNumbers(node, raw, value as Raw);
        break;
      case 'items':
      case 'not':
        lazy(node, key, () => resolve(value, lookup));
        break;
      case 'additionalProperties':
        if (typeof value === 'object' && value !== null) lazy(node, key, () => resolve(value, lookup));
        else node[key] = value;
        break;
      case 'allOf':
      case 'anyOf':
      case 'oneOf':
        lazy(node, key, () => (value as unknown[]).map((branch) => resolve(branch, lookup)));
        break;
      case 'protobuf':
      case 'protobufInline':
        break;
      default:
        node[key] = value;
    }
  }
  return node;
}

function resolveProperties(raw: Raw, lookup: Lookup): Record<string, Schema> {
  const out: Record<string, Schema> = {};
  for (const key of Object.keys(raw)) out[key] = resolve(raw[key], lookup);
  return out;
}

/** Wire numbers stand at the properties in the table and are kept by the parent here. */
function defineProtoNumbers(node: Node, raw: Raw, properties: Raw): void {
  if (raw['x-coracle-proto'] !== undefined) return;
  let any = false;
  for (const key in properties) {
    any = (properties[key] as Raw)['protobuf'] !== undefined;
    if (any) break;
  }
  if (!any) return;
  lazy(node, 'x-coracle-proto', () => {
    const numbers: Record<string, number> = {};
    for (const key of Object.keys(properties)) {
      const number = (properties[key] as Raw)['protobuf'];
      if (typeof number === 'number') numbers[key] = number;
    }
    return numbers;
  });
}

const plain = (value: unknown): PropertyDescriptor => ({ value, enumerable: true, configurable: true, writable: true });

/** A member computed when first read. */
function lazy(node: Node, key: string, compute: () => unknown): void {
  Object.defineProperty(node, key, {
    enumerable: true,
    configurable: true,
    get(this: Node) {
      const value = compute();
      Object.defineProperty(node, key, plain(value));
      return value;
    },
  });
}
