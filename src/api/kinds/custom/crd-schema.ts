/** A definition's JSONSchemaProps as our Schema: known keywords only, apiVersion, kind and metadata put in their places. */
import { isJsonObject } from '../../meta/own-property.ts';
import { OBJECT_META_SCHEMA } from '../../schema/object-meta-schema.ts';
import type { Schema } from '../../schema/schema.ts';
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
const PLAIN: readonly (readonly [string, Accepts])[] = [
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
];

const STRING: Schema = { type: 'string' };

/** The node alone, as it stands in the definition (checked before: structural). */
export function toSchema(raw: RawSchema): Schema {
  const out: Record<string, unknown> = {};
  for (const [key, accepts] of PLAIN) {
    const value = raw[key];
    if (value !== undefined && accepts(value)) out[key] = value;
  }
  if (isJsonObject(raw['properties'])) out['properties'] = toProperties(raw['properties']);
  if (isJsonObject(raw['items'])) out['items'] = toSchema(raw['items']);
  const additional = raw['additionalProperties'];
  if (isJsonObject(additional)) out['additionalProperties'] = toSchema(additional);
  else if (typeof additional === 'boolean') out['additionalProperties'] = additional;
  for (const key of ['allOf', 'anyOf', 'oneOf']) {
    const branches = raw[key];
    if (Array.isArray(branches)) out[key] = branches.filter(isJsonObject).map(toSchema);
  }
  if (isJsonObject(raw['not'])) out['not'] = toSchema(raw['not']);
  if (raw['x-kubernetes-embedded-resource'] === true) addMeta(out, false);
  return out as Schema;
}

/** Without a prototype: a client's field called `constructor` must not be found in it. */
function toProperties(raw: RawSchema): Record<string, Schema> {
  const out: Record<string, Schema> = Object.create(null);
  for (const [name, member] of Object.entries(raw)) if (isJsonObject(member)) out[name] = toSchema(member);
  return out;
}

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
export function rootSchemaOf(raw: RawSchema | undefined): Schema {
  const root = { ...toSchema(raw ?? { type: 'object', 'x-kubernetes-preserve-unknown-fields': true }) } as Record<
    string,
    unknown
  >;
  addMeta(root, true);
  return root as Schema;
}
