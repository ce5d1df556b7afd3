/** A definition's JSONSchemaProps as our Schema: known keywords only, apiVersion, kind and metadata put in their places. */
import { isJsonObject } from '@coracle/apimachinery/meta/own-property';
import { OBJECT_META_SCHEMA } from '@coracle/apimachinery/schema/object-meta-schema';
import type { Schema } from '@coracle/apimachinery/schema/schema';
import type { RawSchema } from './crd.ts';

type Accepts = (value: unknown) => boolean;
const isText: Accepts = (value) => typeof value === 'string' && value !== '';
const isNumber: Accepts = (value) => typeof value === 'number';
const isFlag: Accepts = (value) => typeof value === 'boolean';
const isList: Accepts = Array.isArray;
const isTexts: Accepts = (value) => Array.isArray(value) && value.every((item) => typeof item === 'string');
const isRules: Accepts = (value) => Array.isArray(value) && value.every(isJsonObject);

/**
 * Keywords whose value is taken as it is, when it has the right type: schemas below `items` and `additionalProperties` are
 * not typed in the API, so that anything may stand there.
 */
const PLAIN: ReadonlyMap<string, Accepts> = new Map<string, Accepts>([
  ['type', isText],
  ['format', isText],
  ['description', isText],
  ['title', isText],
  ['example', () => true],
  ['default', (value) => value !== undefined && value !== null],
  ['nullable', isFlag],
  ['enum', isList],
  ['required', isTexts],
  ['minimum', isNumber],
  ['maximum', isNumber],
  ['exclusiveMinimum', isFlag],
  ['exclusiveMaximum', isFlag],
  ['multipleOf', isNumber],
  ['minLength', isNumber],
  ['maxLength', isNumber],
  ['pattern', isText],
  ['minItems', isNumber],
  ['maxItems', isNumber],
  ['uniqueItems', isFlag],
  ['minProperties', isNumber],
  ['maxProperties', isNumber],
  ['x-kubernetes-int-or-string', isFlag],
  ['x-kubernetes-preserve-unknown-fields', isFlag],
  ['x-kubernetes-embedded-resource', isFlag],
  ['x-kubernetes-list-type', isText],
  ['x-kubernetes-list-map-keys', isTexts],
  ['x-kubernetes-map-type', isText],
  ['x-kubernetes-validations', isRules],
]);

const STRING: Schema = { type: 'string' };

/** Nodes that were turned into ours before: a definition is gone through several times, and looked at from many places. */
export type KnownSchemas = Map<RawSchema, Schema>;

function plainNode(raw: RawSchema): Record<string, unknown> {
  const out: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(raw)) {
    if (value !== undefined && PLAIN.get(key)?.(value)) out[key] = value;
  }
  return out;
}

/** The node alone, as it stands in the definition (checked before: structural). */
export function toSchema(raw: RawSchema, known: KnownSchemas): Schema {
  const made = known.get(raw);
  if (made !== undefined) return made;
  const out = plainNode(raw);
  const { properties, items, additionalProperties: additional, not } = raw;
  if (isJsonObject(properties)) {
    // Without a prototype: a client's field called `constructor` must not be found in it.
    const found: Record<string, Schema> = Object.create(null);
    for (const name of Object.keys(properties)) {
      const member = properties[name];
      if (isJsonObject(member)) found[name] = toSchema(member, known);
    }
    out['properties'] = found;
  }
  if (isJsonObject(items)) out['items'] = toSchema(items, known);
  if (isJsonObject(additional)) out['additionalProperties'] = toSchema(additional, known);
  else if (typeof additional === 'boolean') out['additionalProperties'] = additional;
  for (const key of BRANCHES) {
    const branches = raw[key];
    if (!Array.isArray(branches)) continue;
    const found: Schema[] = [];
    for (const branch of branches.filter(isJsonObject)) found.push(toSchema(branch, known));
    out[key] = found;
  }
  if (isJsonObject(not)) out['not'] = toSchema(not, known);
  if (raw['x-kubernetes-embedded-resource'] === true) addMeta(out, false);
  known.set(raw, out as Schema);
  return out as Schema;
}

/** The nodes right below one that `toSchema` turns into ours. */
export function rawSchemasBelow(raw: RawSchema): RawSchema[] {
  const { properties, items, additionalProperties, not } = raw;
  const below = [items, additionalProperties, not];
  if (isJsonObject(properties)) for (const name of Object.keys(properties)) below.push(properties[name]);
  for (const key of BRANCHES) if (Array.isArray(raw[key])) for (const branch of raw[key]) below.push(branch);
  return below.filter(isJsonObject) as RawSchema[];
}

const BRANCHES = ['allOf', 'anyOf', 'oneOf'];

/**
 * Objects have these whatever their schema says. Of metadata, that of a whole object may narrow the two names; that of an
 * embedded one may narrow every field.
 */
function addMeta(node: Record<string, unknown>, isRoot: boolean): void {
  const own = (node['properties'] ?? {}) as Record<string, Schema>;
  const properties: Record<string, Schema> = Object.create(null);
  Object.assign(properties, own);
  properties['apiVersion'] = own['apiVersion'] ?? STRING;
  properties['kind'] = own['kind'] ?? STRING;
  const { properties: narrowed, ...metadata } = own['metadata'] ?? {};
  if (!isRoot && narrowed !== undefined) {
    const all: Record<string, Schema> = Object.create(null);
    Object.assign(all, OBJECT_META_SCHEMA.properties, narrowed);
    properties['metadata'] = { ...OBJECT_META_SCHEMA, ...metadata, properties: all };
    node['properties'] = properties;
    return;
  }
  const names: Record<string, Schema> = {};
  for (const name of ['name', 'generateName']) {
    if (narrowed !== undefined && Object.hasOwn(narrowed, name)) names[name] = { ...STRING, ...narrowed[name] };
  }
  const isNarrowed = Object.keys(names).length > 0 || metadata.required !== undefined;
  properties['metadata'] = isNarrowed
    ? {
        ...OBJECT_META_SCHEMA,
        ...(metadata.required && { required: metadata.required }),
        properties: { ...OBJECT_META_SCHEMA.properties, ...names },
      }
    : OBJECT_META_SCHEMA;
  node['properties'] = properties;
}

/** The schema of a whole custom object. */
export function rootSchemaOf(raw: RawSchema | undefined, known: KnownSchemas = new Map()): Schema {
  const node = toSchema(raw ?? { type: 'object', 'x-kubernetes-preserve-unknown-fields': true }, known);
  const root = { ...node } as Record<string, unknown>;
  addMeta(root, true);
  return root as Schema;
}
