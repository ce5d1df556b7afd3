/** A definition's JSONSchemaProps as our Schema: known keywords only, apiVersion, kind and metadata put in their places. */
import { isJsonObject } from '@coracle/apimachinery/meta/own-property';
import { OBJECT_META_SCHEMA } from '@coracle/apimachinery/schema/object-meta-schema';
import type { Schema } from '@coracle/apimachinery/schema/schema';
import type { RawSchema } from './crd.ts';
import { branchesOf, childOf, propertiesOf, schemasIn } from './structural-rules.ts';

type Accepts = (value: unknown) => boolean;
const isText: Accepts = (value) => typeof value === 'string' && value !== '';
const isNumber: Accepts = (value) => typeof value === 'number';
const isFlag: Accepts = (value) => typeof value === 'boolean';
const isTexts: Accepts = (value) => Array.isArray(value) && value.every((item) => typeof item === 'string');
const isRules: Accepts = (value) => Array.isArray(value) && value.every(isJsonObject);

/**
 * Keywords whose value is taken as it is, when it has the right type: schemas below `items` and `additionalProperties` are
 * not typed in the API, so that anything may stand there.
 */
const PLAIN = new Map<string, Accepts>(
  (
    [
      [isText, 'type format description title pattern x-kubernetes-list-type x-kubernetes-map-type'],
      [isNumber, 'minimum maximum multipleOf minLength maxLength minItems maxItems minProperties maxProperties'],
      [isFlag, 'nullable exclusiveMinimum exclusiveMaximum uniqueItems x-kubernetes-int-or-string'],
      [isFlag, 'x-kubernetes-preserve-unknown-fields x-kubernetes-embedded-resource'],
      [isTexts, 'required x-kubernetes-list-map-keys'],
      [isRules, 'x-kubernetes-validations'],
      [Array.isArray, 'enum'],
      [(value) => value !== undefined && value !== null, 'default'],
      [() => true, 'example'],
    ] satisfies [Accepts, string][]
  ).flatMap(([accepts, names]) => names.split(' ').map((name) => [name, accepts] as const)),
);

const STRING: Schema = { type: 'string' };

/** Nodes that were turned into ours before: a definition is gone through several times, and looked at from many places. */
export type KnownSchemas = Map<RawSchema, Schema>;

/** The node alone, as it stands in the definition (checked before: structural). */
export function toSchema(raw: RawSchema, known: KnownSchemas): Schema {
  const made = known.get(raw);
  if (made !== undefined) return made;
  const out: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(raw)) {
    if (value !== undefined && PLAIN.get(key)?.(value)) out[key] = value;
  }
  if (isJsonObject(raw['properties'])) {
    // Without a prototype: a client's field called `constructor` must not be found in it.
    const found: Record<string, Schema> = Object.create(null);
    for (const [name, member] of propertiesOf(raw)) found[name] = toSchema(member, known);
    out['properties'] = found;
  }
  const setChild = (key: string): void => {
    const child = childOf(raw, key);
    if (child !== undefined) out[key] = toSchema(child, known);
  };
  setChild('items');
  setChild('additionalProperties');
  if (typeof raw['additionalProperties'] === 'boolean') out['additionalProperties'] = raw['additionalProperties'];
  for (const key of BRANCHES) {
    if (Array.isArray(raw[key])) out[key] = branchesOf(raw, key).map((branch) => toSchema(branch, known));
  }
  setChild('not');
  if (raw['x-kubernetes-embedded-resource'] === true) addMeta(out, false);
  known.set(raw, out as Schema);
  return out as Schema;
}

const BRANCHES = ['allOf', 'anyOf', 'oneOf'];

/** The nodes right below one that `toSchema` turns into ours. */
export const rawSchemasBelow = (raw: RawSchema): RawSchema[] =>
  [...schemasIn(raw, ['items', 'additionalProperties', 'not', 'properties', ...BRANCHES])].map(([, child]) => child);

/**
 * Objects have these whatever their schema says. Of metadata, that of a whole object may narrow the two names; that of an
 * embedded one may narrow every field.
 */
function addMeta(node: Record<string, unknown>, isRoot: boolean): void {
  const own = (node['properties'] ?? {}) as Record<string, Schema>;
  const { properties: narrowed = {}, ...metadata } = own['metadata'] ?? {};
  const known = OBJECT_META_SCHEMA.properties;
  const merged = { apiVersion: own['apiVersion'] ?? STRING, kind: own['kind'] ?? STRING, metadata: OBJECT_META_SCHEMA };
  if (!isRoot && own['metadata']?.properties !== undefined) {
    const properties = Object.assign(Object.create(null), known, narrowed);
    merged.metadata = { ...OBJECT_META_SCHEMA, ...metadata, properties };
  } else {
    const names = ['name', 'generateName'].filter((name) => Object.hasOwn(narrowed, name));
    const properties = Object.fromEntries(names.map((name) => [name, { ...STRING, ...narrowed[name] }]));
    if (names.length > 0 || metadata.required !== undefined) {
      const required = metadata.required && { required: metadata.required };
      merged.metadata = { ...OBJECT_META_SCHEMA, ...required, properties: { ...known, ...properties } };
    }
  }
  node['properties'] = Object.assign(Object.create(null), own, merged);
}

/** The schema of a whole custom object. */
export function rootSchemaOf(raw: RawSchema | undefined, known: KnownSchemas = new Map()): Schema {
  const node = toSchema(raw ?? { type: 'object', 'x-kubernetes-preserve-unknown-fields': true }, known);
  const root = { ...node } as Record<string, unknown>;
  addMeta(root, true);
  return root as Schema;
}
