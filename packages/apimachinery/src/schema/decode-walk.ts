/** Go's decoder in words: the first member of a value that does not fit its Go type, and which that is. */
import { isBase64 } from '../meta/base64.ts';
import { jsonKind } from '../meta/go-text.ts';
import { isJsonObject } from '../meta/own-property.ts';
import { isQuantity, parseQuantity } from '../quantity/quantity.ts';
import { parseGoTime } from './go-time.ts';
import type { OddNumbers } from './scan-json.ts';
import { FORMS, formOf, goTypeName, isQuantitySchema, type Schema, UNSIGNED } from './schema.ts';
import { INT64_LENGTH } from './wide-integers.ts';

/** Where we are: the Go struct that holds the field, its path in Go without indices, and its path in the document. */
interface Place {
  readonly struct: string;
  readonly path: string;
  readonly at: string;
  readonly numbers: OddNumbers | undefined;
}

/** What Go says of the value, or undefined when it decodes. */
export const problemText = (schema: Schema, value: unknown, numbers?: OddNumbers): string | undefined =>
  problemOf(schema, value, { struct: '', path: '', at: '', numbers });

/** True for a Go type that does not decode as its schema says. */
export const hasOwnDecoder = (schema: Schema): boolean => ownDecoder(schema) !== undefined;

const ownDecoder = (schema: Schema): Decode | undefined => {
  const name = goTypeName(schema);
  return name === undefined ? undefined : OWN_DECODERS.get(name);
};

/** What is wrong with a value that is not null. */
type Decode = (value: unknown, place: Place, schema: Schema) => string | undefined;

const takesAll: Decode = () => undefined;

/** Go types with their own decoder. */
const OWN_DECODERS: ReadonlyMap<string, Decode> = new Map<string, Decode>([
  ['Quantity', quantityProblem],
  ['IntOrString', intOrStringProblem],
  ['Time', timeProblem('time')],
  ['MicroTime', timeProblem('micro')],
  ['RawExtension', takesAll],
  ['JSON', takesAll],
  ['FieldsV1', takesAll],
  ['JSONSchemaPropsOrBool', schemaOrBoolProblem],
  ['JSONSchemaPropsOrArray', formProblem],
  ['JSONSchemaPropsOrStringArray', formProblem],
]);

const BY_TYPE: Readonly<Record<NonNullable<Schema['type']>, Decode>> = {
  string: textProblem,
  boolean: (value, place, schema) => (typeof value === 'boolean' ? undefined : mismatch(value, place, schema)),
  integer: integerProblem,
  number: numberProblem,
  array: listProblem,
  object: objectProblem,
};

function problemOf(schema: Schema, value: unknown, place: Place): string | undefined {
  if (value === null || value === undefined) return undefined;
  const own = ownDecoder(schema);
  if (own !== undefined) return own(value, place, schema);
  // Of any size, and with a fraction: what no webhook makes text of is refused as no whole number.
  if (isNumber(value) && isQuantitySchema(schema)) return undefined;
  if (schema['x-kubernetes-int-or-string'] || schema.format === 'int-or-string')
    return intOrStringProblem(value, place);
  return schema.type && BY_TYPE[schema.type](value, place, schema);
}

function quantityProblem(value: unknown, place: Place): string | undefined {
  // Any other JSON is text that is no quantity.
  if (typeof value !== 'string' && !isNumber(value)) return NO_QUANTITY;
  const text = (typeof value === 'string' ? value : tokenOf(value, place)).trim();
  if (isQuantity(text)) return undefined;
  try {
    parseQuantity(text);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

const NO_QUANTITY = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

function schemaOrBoolProblem(value: unknown, place: Place, schema: Schema): string | undefined {
  if (isJsonObject(value)) return formProblem(value, place, schema);
  return typeof value === 'boolean' ? undefined : 'boolean or JSON schema expected';
}

function formProblem(value: unknown, place: Place, schema: Schema): string | undefined {
  const form = schema[FORMS] && formOf(schema[FORMS], value);
  return form && problemOf(form, value, place);
}

function intOrStringProblem(value: unknown, place: Place): string | undefined {
  if (typeof value === 'string') return undefined;
  if (!isNumber(value)) return sentence(jsonKind(value), 'int32', place);
  const token = tokenOf(value, place);
  return isInteger(token, RANGES.int32) ? undefined : sentence(`number ${token}`, 'int32', place);
}

function timeProblem(kind: 'time' | 'micro'): Decode {
  return (value, place) => {
    if (typeof value !== 'string') return sentence(jsonKind(value), 'string', place);
    const time = parseGoTime(value, kind);
    return typeof time === 'string' ? time : undefined;
  };
}

function textProblem(value: unknown, place: Place, schema: Schema): string | undefined {
  if (typeof value !== 'string') return mismatch(value, place, schema);
  if (schema.format === 'date-time') return timeProblem('time')(value, place, schema);
  // Line breaks inside base64 do not count.
  const isBad = schema.format === 'byte' && !isBase64(/[\r\n]/.test(value) ? value.replace(/[\r\n]/g, '') : value);
  return isBad ? 'illegal base64 data' : undefined;
}

function integerProblem(value: unknown, place: Place, schema: Schema): string | undefined {
  if (!isNumber(value)) return mismatch(value, place, schema);
  const token = tokenOf(value, place);
  const range = schema[UNSIGNED] ? RANGES.uint32 : schema.format === 'int32' ? RANGES.int32 : RANGES.int64;
  return isInteger(token, range) ? undefined : sentence(`number ${token}`, goType(schema), place);
}

function numberProblem(value: unknown, place: Place, schema: Schema): string | undefined {
  if (!isNumber(value)) return mismatch(value, place, schema);
  const isTooLarge = value === Number.POSITIVE_INFINITY || value === Number.NEGATIVE_INFINITY;
  return isTooLarge ? sentence(`number ${tokenOf(value, place)}`, 'float64', place) : undefined;
}

function listProblem(value: unknown, place: Place, schema: Schema): string | undefined {
  if (!Array.isArray(value)) return mismatch(value, place, schema);
  if (schema.items === undefined) return undefined;
  for (let i = 0; i < value.length; i++) {
    const problem = problemOf(schema.items, value[i], { ...place, at: `${place.at}[${i}]` });
    if (problem !== undefined) return problem;
  }
  return undefined;
}

function objectProblem(value: unknown, place: Place, schema: Schema): string | undefined {
  if (!isJsonObject(value)) return mismatch(value, place, schema);
  const { properties, additionalProperties } = schema;
  const struct = goTypeName(schema) ?? place.struct;
  const inside = (name: string, path: string): string => (path === '' ? name : `${path}.${name}`);
  for (const key of Object.keys(value)) {
    const at = inside(key, place.at);
    let problem: string | undefined;
    if (properties !== undefined && Object.hasOwn(properties, key)) {
      problem = problemOf(properties[key]!, value[key], { ...place, struct, path: inside(key, place.path), at });
    } else if (typeof additionalProperties === 'object') {
      problem = problemOf(additionalProperties, value[key], { ...place, at });
    }
    if (problem !== undefined) return problem;
  }
  return undefined;
}

interface Range {
  readonly low: bigint;
  readonly high: bigint;
}

const RANGES = {
  int32: { low: -(2n ** 31n), high: 2n ** 31n - 1n },
  uint32: { low: 0n, high: 2n ** 32n - 1n },
  int64: { low: -(2n ** 63n), high: 2n ** 63n - 1n },
} as const satisfies Record<string, Range>;

function isInteger(token: string, { low, high }: Range): boolean {
  if (token.length > INT64_LENGTH || !/^-?\d+$/.test(token)) return false;
  const value = BigInt(token);
  return value >= low && value <= high && (low < 0n || !token.startsWith('-'));
}

const isNumber = (value: unknown): value is number | bigint => typeof value === 'number' || typeof value === 'bigint';

/** A number as the document spells it. */
const tokenOf = (value: number | bigint, { at, numbers }: Place): string => numbers?.get(at)?.text ?? String(value);

const mismatch = (value: unknown, place: Place, schema: Schema): string =>
  sentence(jsonKind(value), goType(schema), place);

function sentence(kind: string, type: string, { path, struct }: Place): string {
  if (path === '') return `json: cannot unmarshal ${kind} into Go value of type ${type}`;
  return `json: cannot unmarshal ${kind} into Go struct field ${struct === '' ? '' : `${struct}.`}${path} of type ${type}`;
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
