/** CEL types of structural schemas. */
import { decodeBase64 } from '@coracle/apimachinery/meta/base64';
import type { Schema } from '@coracle/apimachinery/schema/schema';
import { CelEvaluationError } from './errors.ts';
import { parseDate, parseDuration, parseTimestamp } from './time.ts';
import {
  BOOL,
  BYTES,
  type CelField,
  type CelType,
  DOUBLE,
  DURATION,
  DYN,
  escapeProperty,
  INT,
  STRING,
  TIMESTAMP,
} from './types.ts';
import { CelMap, doubleFromJson, fromJson, runtimeTypeName } from './values.ts';

/** The largest request in bytes: it bounds what no keyword bounds. */
const MAX_REQUEST = 3 * 1024 * 1024;
/** Sizes in JSON: `""`, `[]`, `{}`; the quotes, colons and commas around a member. */
const EMPTY = 2;
const MEMBER = 4;
const MAP_ENTRY = 6;

export interface SchemaTypeOptions {
  /**
   * The root of an object (or an embedded resource): only apiVersion, kind, metadata.name and metadata.generateName are
   * visible beside the declared properties, whatever the schema says of metadata. Leave it out to type a kind whose schema
   * declares its metadata.
   */
  readonly root?: boolean;
  /** Name of the outermost object type in messages. Default `object`. */
  readonly name?: string;
}

/**
 * The type of a value that a schema describes. Properties that expressions cannot reach, as upstream (no type, no items,
 * x-kubernetes-preserve-unknown-fields alone), are not there: naming one is `undefined field`.
 * A schema that says nothing is `dyn`. The graph may be cyclic: fields are resolved when they are named.
 */
export function celTypeOfSchema(schema: Schema, options: SchemaTypeOptions = {}): CelType {
  const type = typeOfNode(schema, options.root === true, options.name ?? 'object') ?? DYN;
  // Of an object within only what it holds is asked for.
  return type.kind === 'object' ? { ...type, minSize: minSize(schema) } : type;
}

function typeOfNode(schema: Schema, root: boolean, name: string): CelType | undefined {
  const type = typeOfValue(schema, root, name);
  return type !== undefined && schema.nullable === true ? { ...type, nullable: true } : type;
}

function typeOfValue(schema: Schema, root: boolean, name: string): CelType | undefined {
  if (schema['x-kubernetes-int-or-string'] === true) {
    return { ...DYN, maxElements: MAX_REQUEST - EMPTY, minSize: 1 };
  }
  switch (schema.type) {
    case 'array':
      return listType(schema, name);
    case 'object':
      return isMapSchema(schema.additionalProperties) && !root
        ? mapTypeOf(schema, schema.additionalProperties, name)
        : objectType(root ? withIdentity(schema) : schema, name);
    case 'string':
      return stringType(schema);
    case 'boolean':
      return { ...BOOL, maxElements: 0, minSize: 4 };
    case 'number':
      return { ...DOUBLE, maxElements: 0, minSize: 1, wrap: doubleFromJson };
    case 'integer':
      return { ...INT, maxElements: 0, minSize: 1, wrap: intFromJson };
    default:
      return undefined;
  }
}

const isMapSchema = (schema: Schema | boolean | undefined): schema is Schema => typeof schema === 'object';

const isEmbedded = (schema: Schema): boolean => schema['x-kubernetes-embedded-resource'] === true;

function listType(schema: Schema, name: string): CelType | undefined {
  if (schema.items === undefined) return undefined;
  const element = typeOfNode(schema.items, isEmbedded(schema.items), `${name}.@idx`);
  if (element === undefined) return undefined;
  const wrap = wholeWrap(element);
  const kind = schema['x-kubernetes-list-type'];
  return {
    kind: 'list',
    name: 'list',
    params: [element],
    maxElements: schema.maxItems ?? Math.floor((MAX_REQUEST - EMPTY) / (minSize(schema.items) + 1)),
    minSize: EMPTY,
    ...(wrap === undefined ? {} : { wrap: (raw) => (Array.isArray(raw) ? raw.map(wrap) : raw) }),
    ...(kind === 'set' || kind === 'map'
      ? { listType: { kind, keys: schema['x-kubernetes-list-map-keys'] ?? [] } }
      : {}),
  };
}

function mapTypeOf(schema: Schema, values: Schema, name: string): CelType | undefined {
  const value = typeOfNode(values, isEmbedded(values), `${name}.@elem`);
  if (value === undefined) return undefined;
  const wrap = wholeWrap(value);
  return {
    kind: 'map',
    name: 'map',
    // Upstream bounds keys by nothing and so counts them as empty.
    params: [{ ...STRING, maxElements: 0 }, value],
    maxElements: schema.maxProperties ?? Math.floor((MAX_REQUEST - EMPTY) / (minSize(values) + MAP_ENTRY)),
    minSize: EMPTY,
    ...(wrap === undefined ? {} : { wrap: (raw) => wrapMap(raw, wrap) }),
  };
}

/** How a list or map of such values is made when it is taken as a whole; an integer is looked at only where it is read. */
const wholeWrap = ({ kind, wrap }: CelType): CelType['wrap'] => (kind === 'int' ? undefined : wrap);

/** A raw JSON value where the schema says `integer`; null stays. @throws CelEvaluationError for any other */
function intFromJson(raw: unknown): unknown {
  const value = fromJson(raw);
  if (typeof value === 'number' || typeof value === 'bigint' || value === null || value === undefined) return value;
  throw new CelEvaluationError(`invalid data, expected int, got ${runtimeTypeName(value)}`);
}

function wrapMap(raw: unknown, wrap: (raw: unknown) => unknown): unknown {
  if (typeof raw !== 'object' || raw === null || raw instanceof CelMap) return raw;
  const map = new CelMap();
  for (const [key, value] of Object.entries(raw)) map.entries.set(key, [key, wrap(value)]);
  return map;
}

function objectType(schema: Schema, name: string): CelType {
  let fields: ReadonlyMap<string, CelField> | undefined;
  return {
    kind: 'object',
    name,
    params: [],
    maxElements: 0,
    field(escaped) {
      fields ??= fieldsOf(schema, name);
      return fields.get(escaped);
    },
  };
}

function fieldsOf({ properties = {} }: Schema, name: string): Map<string, CelField> {
  const found = new Map<string, CelField>();
  for (const [property, child] of Object.entries(properties)) {
    const escaped = escapeProperty(property);
    const type = escaped && typeOfNode(child, isEmbedded(child), `${name}.${escaped}`);
    if (escaped && type) found.set(escaped, { property, type, nullIsAbsent: true });
  }
  return found;
}

const TEXT: Schema = { type: 'string' };

function withIdentity(schema: Schema): Schema {
  const declared = schema.properties?.['metadata']?.properties ?? {};
  const metadata: Schema = {
    type: 'object',
    properties: { name: declared['name'] ?? TEXT, generateName: declared['generateName'] ?? TEXT },
  };
  return { ...schema, properties: { ...schema.properties, apiVersion: TEXT, kind: TEXT, metadata } };
}

function stringType(schema: Schema): CelType {
  switch (schema.format) {
    case 'byte':
      return { ...BYTES, maxElements: schema.maxLength ?? MAX_REQUEST - EMPTY, minSize: EMPTY, wrap: bytesFromJson };
    case 'duration':
      return { ...DURATION, maxElements: 32, minSize: 3, wrap: parsing(parseDuration, 'duration') };
    case 'date':
      return { ...TIMESTAMP, maxElements: 12, minSize: 12, wrap: parsing(parseDate, 'date') };
    case 'date-time':
      return { ...TIMESTAMP, maxElements: 32, minSize: 21, wrap: parsing(parseTimestamp, 'date-time') };
    default:
      return { ...STRING, maxElements: maxText(schema), minSize: EMPTY };
  }
}

/** In bytes: a character of the schema may take four. */
function maxText(schema: Schema): number {
  if (schema.maxLength !== undefined) return schema.maxLength * 4;
  const texts = (schema.enum ?? []).filter((value) => typeof value === 'string');
  return texts.length > 0 ? Math.max(...texts.map((text) => text.length)) : MAX_REQUEST - EMPTY;
}

const parsing = (parse: (text: string) => unknown, format: string) => (raw: unknown) => {
  if (typeof raw !== 'string') return raw;
  const value = parse(raw);
  if (value === undefined) throw new CelEvaluationError(`Invalid ${format} ${raw}`);
  return value;
};

function bytesFromJson(raw: unknown): unknown {
  if (typeof raw !== 'string') return raw;
  try {
    return decodeBase64(raw);
  } catch {
    throw new CelEvaluationError(`Invalid byte formatted string ${raw}`);
  }
}

/** Fewest bytes of a value in JSON. Required members count, unless a default fills them in. */
function minSize(schema: Schema, seen: ReadonlySet<Schema> = new Set()): number {
  if (schema['x-kubernetes-int-or-string'] === true) return 1;
  if (schema.type === 'boolean') return 4;
  if (schema.type === 'number' || schema.type === 'integer') return 1;
  if (schema.type === 'string') return stringType(schema).minSize!;
  if (schema.type !== 'object' || seen.has(schema) || isMapSchema(schema.additionalProperties)) return EMPTY;
  const inside = new Set(seen).add(schema);
  let size = EMPTY;
  for (const name of schema.required ?? []) {
    const child = schema.properties?.[name];
    if (child !== undefined && child.default === undefined) size += name.length + minSize(child, inside) + MEMBER;
  }
  return size;
}
