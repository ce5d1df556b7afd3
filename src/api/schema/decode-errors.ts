/**
 * What Go's JSON decoding would say about a value of a built-in kind: the first member whose JSON type does not fit its
 * Go type. Only types are judged here, no business rules.
 */
import { isBase64 } from '../meta/base64.ts';
import { keysOfLarge } from '../meta/small.ts';
import { Pace, type Steps } from '../meta/steps.ts';
import { isQuantity, parseQuantity } from '../quantity/quantity.ts';
import { parseGoTime } from './go-time.ts';
import { type Schema, UNSIGNED } from './schema.ts';

export interface ObjectKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
}

/** The message of the 400 BadRequest, or undefined when the value decodes. */
export function decodeErrors(schema: Schema, value: unknown, gvk: ObjectKind): string | undefined {
  const problem = decodeProblem(schema, value);
  if (problem === undefined) return undefined;
  return `${gvk.kind} in version "${gvk.version}" cannot be handled as a ${gvk.kind}: ${problem}`;
}

/** The same in steps, for large values. */
export function* decodeErrorsSteps(schema: Schema, value: unknown, gvk: ObjectKind): Steps<string | undefined> {
  const fits = fitsOf(schema);
  const isFit = fits.steps ? yield* fits.steps(value, new Pace()) : fits(value);
  yield;
  return isFit ? undefined : decodeErrors(schema, value, gvk);
}

/** The same without the sentence around it: `json: cannot unmarshal string into ...`. */
export function decodeProblem(schema: Schema, value: unknown): string | undefined {
  return fitsOf(schema)(value) ? undefined : decode(schema, value, { struct: '', path: '' });
}

/** Where we are: the Go struct that holds the field, and the path of JSON names without indices. */
interface Place {
  readonly struct: string;
  readonly path: string;
}

interface Fits {
  (value: unknown): boolean;
  /** The same in steps, where there may be much of it. */
  steps?: (value: unknown, pace: Pace, keys?: readonly string[]) => Steps<boolean>;
}
const FITS = new WeakMap<Schema, Fits>();

/** The verdict alone, compiled: it runs on every write, the walk that words the problem only on bad ones. */
function fitsOf(schema: Schema): Fits {
  let fits = FITS.get(schema);
  if (fits === undefined) {
    // Members are looked up when first met: a cyclic schema would not end otherwise.
    fits = compileFits(schema);
    FITS.set(schema, fits);
  }
  return fits;
}

function compileFits(schema: Schema): Fits {
  const isPlain = schema['x-coracle-name'] === undefined || !OWN_DECODERS.has(lastPart(schema['x-coracle-name']));
  if (isPlain && schema.type === 'object') return fitsObject(schema);
  if (isPlain && schema.type === 'array') return fitsArray(schema);
  if (isPlain && schema.type === 'boolean') return (value) => typeof value === 'boolean' || value == null;
  if (isPlain && schema.type === 'string' && schema.format === undefined && !schema['x-kubernetes-int-or-string']) {
    return (value) => typeof value === 'string' || value == null;
  }
  const nowhere = { struct: '', path: '' };
  return (value) => decode(schema, value, nowhere) === undefined;
}

function fitsArray(schema: Schema): Fits {
  const items = schema.items;
  if (items === undefined) return (value) => Array.isArray(value) || value == null;
  let item: Fits | undefined;
  const fits: Fits = (value) => {
    if (!Array.isArray(value)) return value == null;
    item ??= fitsOf(items);
    for (const element of value) if (!item(element)) return false;
    return true;
  };
  fits.steps = function* (value, pace) {
    if (!Array.isArray(value)) return value == null;
    item ??= fitsOf(items);
    for (const element of value) {
      const keys = item.steps && keysOfLarge(element);
      if (!(keys ? yield* item.steps!(element, pace, keys) : item(element))) return false;
      if (pace.due()) yield;
    }
    return true;
  };
  return fits;
}

function fitsObject(schema: Schema): Fits {
  const { properties } = schema;
  const rest = typeof schema.additionalProperties === 'object' ? schema.additionalProperties : undefined;
  const members = new Map<string, Fits>();
  const memberOf = (key: string): Fits | undefined => {
    const isProperty = properties !== undefined && Object.hasOwn(properties, key);
    const member = isProperty ? properties[key] : rest;
    if (member === undefined) return undefined;
    const fits = fitsOf(member);
    // Names of a map are the user's: only those of the schema are worth keeping.
    if (isProperty) members.set(key, fits);
    return fits;
  };
  const fits: Fits = (value) => {
    if (typeof value !== 'object' || value === null) return value == null;
    if (Array.isArray(value)) return false;
    const object = value as Record<string, unknown>;
    for (const key of Object.keys(object)) {
      const member = members.get(key) ?? memberOf(key);
      if (member !== undefined && !member(object[key])) return false;
    }
    return true;
  };
  fits.steps = function* (value, pace, keys = Object.keys(value ?? {})) {
    if (typeof value !== 'object' || value === null) return value == null;
    if (Array.isArray(value)) return false;
    const object = value as Record<string, unknown>;
    if (pace.due(keys.length)) yield;
    for (const key of keys) {
      if (pace.due()) yield;
      const member = members.get(key) ?? memberOf(key);
      if (member === undefined) continue;
      const entry = object[key];
      const inside = member.steps && keysOfLarge(entry);
      if (!(inside ? yield* member.steps!(entry, pace, inside) : member(entry))) return false;
    }
    return true;
  };
  return fits;
}

function decode(schema: Schema, value: unknown, place: Place): string | undefined {
  if (value === null || value === undefined) return undefined;
  const name = schema['x-coracle-name'];
  if (name !== undefined && OWN_DECODERS.has(lastPart(name))) return OWN_DECODERS.get(lastPart(name))!(value, place);
  if (schema['x-kubernetes-int-or-string'] || schema.format === 'int-or-string') return decodeIntOrString(value, place);
  switch (schema.type) {
    case 'string':
      return decodeString(schema, value, place);
    case 'boolean':
      return typeof value === 'boolean' ? undefined : mismatch(schema, value, place);
    case 'integer':
      return decodeInteger(schema, value, place);
    case 'number':
      return typeof value === 'number' ? undefined : mismatch(schema, value, place);
    case 'array':
      return decodeArray(schema, value, place);
    case 'object':
      return decodeObject(schema, value, place);
    case undefined:
      return undefined;
  }
}

const lastPart = (name: string): string => name.slice(name.lastIndexOf('.') + 1);

/** Go types with their own decoder. */
const OWN_DECODERS = new Map<string, (value: unknown, place: Place) => string | undefined>([
  ['Quantity', decodeQuantity],
  ['IntOrString', decodeIntOrString],
  ['RawExtension', () => undefined],
  ['JSON', () => undefined],
  ['FieldsV1', () => undefined],
  ['JSONSchemaPropsOrBool', () => undefined],
  ['JSONSchemaPropsOrArray', () => undefined],
  ['JSONSchemaPropsOrStringArray', () => undefined],
]);

function decodeQuantity(value: unknown): string | undefined {
  if (typeof value !== 'string' && typeof value !== 'number') {
    return "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
  }
  const text = String(value).trim();
  if (isQuantity(text)) return undefined;
  try {
    parseQuantity(text);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

function decodeIntOrString(value: unknown, place: Place): string | undefined {
  if (typeof value === 'string') return undefined;
  return decodeInteger({ type: 'integer', format: 'int32' }, value, place);
}

function decodeString(schema: Schema, value: unknown, place: Place): string | undefined {
  if (typeof value !== 'string') return mismatch(schema, value, place);
  if (schema.format === 'byte') return base64Problem(value);
  if (schema.format === 'date-time') {
    const time = parseGoTime(value, lastPart(schema['x-coracle-name'] ?? '') === 'MicroTime' ? 'micro' : 'time');
    if (typeof time === 'string') return time;
  }
  return undefined;
}

/** Go ignores line breaks inside base64 and names the first bad byte. */
function base64Problem(text: string): string | undefined {
  const compact = /[\r\n]/.test(text) ? text.replace(/[\r\n]/g, '') : text;
  if (isBase64(compact)) return undefined;
  const bad = /[^A-Za-z0-9+/\r\n]/.exec(text);
  const at = bad === null ? text.length : bad.index;
  return `illegal base64 data at input byte ${at}`;
}

// The largest double below 2^63 stands for the upper bound, which is not representable.
const INT32 = [-(2 ** 31), 2 ** 31 - 1] as const;
const UINT32 = [0, 2 ** 32 - 1] as const;
const INT64 = [-(2 ** 63), 2 ** 63 - 1024] as const;

function decodeInteger(schema: Schema, value: unknown, place: Place): string | undefined {
  if (typeof value !== 'number') return mismatch(schema, value, place);
  const [low, high] = schema[UNSIGNED] ? UINT32 : schema.format === 'int32' ? INT32 : INT64;
  if (Number.isInteger(value) && value >= low && value <= high) return undefined;
  return report(`number ${value}`, goType(schema), place);
}

function decodeArray(schema: Schema, value: unknown, place: Place): string | undefined {
  if (!Array.isArray(value)) return mismatch(schema, value, place);
  if (schema.items === undefined) return undefined;
  for (const item of value) {
    const problem = decode(schema.items, item, place);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

function decodeObject(schema: Schema, value: unknown, place: Place): string | undefined {
  if (typeof value !== 'object' || Array.isArray(value)) return mismatch(schema, value, place);
  const { properties, additionalProperties } = schema;
  const object = value as Record<string, unknown>;
  const struct = schema['x-coracle-name'] === undefined ? place.struct : lastPart(schema['x-coracle-name']);
  for (const key of Object.keys(object)) {
    if (properties !== undefined && Object.hasOwn(properties, key)) {
      const member = object[key];
      const path = place.path === '' ? key : `${place.path}.${key}`;
      const problem = decode(properties[key]!, member, { struct, path });
      if (problem !== undefined) return problem;
    } else if (typeof additionalProperties === 'object') {
      const problem = decode(additionalProperties, object[key], place);
      if (problem !== undefined) return problem;
    }
  }
  return undefined;
}

function jsonKind(value: unknown): string {
  if (Array.isArray(value)) return 'array';
  return typeof value === 'boolean' ? 'bool' : typeof value;
}

const mismatch = (schema: Schema, value: unknown, place: Place): string =>
  report(jsonKind(value), goType(schema), place);

function report(kind: string, type: string, place: Place): string {
  if (place.path === '') return `json: cannot unmarshal ${kind} into Go value of type ${type}`;
  const struct = place.struct === '' ? '' : `${place.struct}.`;
  return `json: cannot unmarshal ${kind} into Go struct field ${struct}${place.path} of type ${type}`;
}

/** `[]v1.Container`, `map[string]string`, `int32`. */
function goType(schema: Schema): string {
  const name = schema['x-coracle-name'];
  if (name !== undefined) return name.split('.').slice(-2).join('.');
  switch (schema.type) {
    case 'array':
      return `[]${schema.items ? goType(schema.items) : 'interface {}'}`;
    case 'object':
      return `map[string]${typeof schema.additionalProperties === 'object' ? goType(schema.additionalProperties) : 'interface {}'}`;
    case 'integer':
      return schema[UNSIGNED] ? 'uint32' : schema.format === 'int32' ? 'int32' : 'int64';
    case 'number':
      return 'float64';
    case 'boolean':
      return 'bool';
    case 'string':
      return schema.format === 'byte' ? '[]uint8' : 'string';
    default:
      return 'interface {}';
  }
}
