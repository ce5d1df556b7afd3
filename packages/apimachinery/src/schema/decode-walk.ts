/** In words what does not decode: the first member of a value that does not fit its type, what is expected, and what was sent. */
import { isBase64 } from '../meta/base64.ts';
import { jsonKind, wrongTypeText } from '../meta/go-text.ts';
import { isJsonObject } from '../meta/own-property.ts';
import { NOT_A_QUANTITY, quantityProblem as quantityProblemOf } from '../quantity/quantity.ts';
import { parseGoTime } from './go-time.ts';
import type { OddNumbers } from './scan-json.ts';
import { FORMS, formOf, goTypeName, isQuantitySchema, type Schema, UNSIGNED } from './schema.ts';
import { INT64_LENGTH } from './wide-integers.ts';

/** Where we are: the path in the document. */
interface Place {
  readonly at: string;
  readonly numbers: OddNumbers | undefined;
}

/** What is wrong with the value, or undefined when it decodes. */
export const problemText = (schema: Schema, value: unknown, numbers?: OddNumbers): string | undefined =>
  problemOf(schema, value, { at: '', numbers });

/** True for a Go type that does not decode as its schema says. */
export const hasOwnDecoder = (schema: Schema): boolean => ownDecoder(schema) !== undefined;

const ownDecoder = (schema: Schema): Decode | undefined => OWN_DECODERS.get(goTypeName(schema) ?? '');

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
  boolean: (value, place) => (typeof value === 'boolean' ? undefined : mismatch(value, place, 'bool')),
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
  if (typeof value !== 'string' && !isNumber(value)) return NOT_A_QUANTITY;
  return quantityProblemOf((typeof value === 'string' ? value : tokenOf(value, place)).trim());
}

function schemaOrBoolProblem(value: unknown, place: Place, schema: Schema): string | undefined {
  if (isJsonObject(value)) return formProblem(value, place, schema);
  return typeof value === 'boolean' ? undefined : 'boolean or JSON schema expected';
}

function formProblem(value: unknown, place: Place, schema: Schema): string | undefined {
  const form = schema[FORMS] && formOf(schema[FORMS], value);
  return form && problemOf(form, value, place);
}

function intOrStringProblem(value: unknown, place: Place): string | undefined {
  return typeof value === 'string' ? undefined : integerOf('int32', value, place);
}

function timeProblem(kind: 'time' | 'micro'): Decode {
  return (value, place) => {
    if (typeof value !== 'string') return mismatch(value, place, 'string');
    const time = parseGoTime(value, kind);
    return typeof time === 'string' ? time : undefined;
  };
}

function textProblem(value: unknown, place: Place, schema: Schema): string | undefined {
  if (typeof value !== 'string') return mismatch(value, place, 'string');
  if (schema.format === 'date-time') return timeProblem('time')(value, place, schema);
  // Line breaks inside base64 do not count.
  const isBad = schema.format === 'byte' && !isBase64(/[\r\n]/.test(value) ? value.replace(/[\r\n]/g, '') : value);
  return isBad ? 'illegal base64 data' : undefined;
}

function integerProblem(value: unknown, place: Place, schema: Schema): string | undefined {
  return integerOf(schema[UNSIGNED] ? 'uint32' : schema.format === 'int32' ? 'int32' : 'int64', value, place);
}

const integerOf = (type: keyof typeof RANGES, value: unknown, place: Place): string | undefined =>
  isNumber(value) && isInteger(tokenOf(value, place), RANGES[type]) ? undefined : mismatch(value, place, type);

function numberProblem(value: unknown, place: Place): string | undefined {
  // One that is too large for a float64 is read as infinite.
  return isNumber(value) && Number.isFinite(Number(value)) ? undefined : mismatch(value, place, 'float64');
}

function listProblem(value: unknown, place: Place, schema: Schema): string | undefined {
  if (!Array.isArray(value)) return mismatch(value, place, 'array');
  if (schema.items === undefined) return undefined;
  for (let i = 0; i < value.length; i++) {
    const problem = problemOf(schema.items, value[i], { ...place, at: `${place.at}[${i}]` });
    if (problem !== undefined) return problem;
  }
  return undefined;
}

function objectProblem(value: unknown, place: Place, schema: Schema): string | undefined {
  if (!isJsonObject(value)) return mismatch(value, place, 'object');
  const { properties, additionalProperties } = schema;
  for (const key of Object.keys(value)) {
    const isProperty = properties !== undefined && Object.hasOwn(properties, key);
    const member = isProperty ? properties[key] : additionalProperties;
    if (typeof member !== 'object') continue;
    const at = place.at === '' ? key : `${place.at}.${key}`;
    const problem = problemOf(member, value[key], { ...place, at });
    if (problem !== undefined) return problem;
  }
  return undefined;
}

const RANGES = {
  int32: { low: -(2n ** 31n), high: 2n ** 31n - 1n },
  uint32: { low: 0n, high: 2n ** 32n - 1n },
  int64: { low: -(2n ** 63n), high: 2n ** 63n - 1n },
};

function isInteger(token: string, { low, high }: (typeof RANGES)['int32']): boolean {
  if (token.length > INT64_LENGTH || !/^-?\d+$/.test(token)) return false;
  const value = BigInt(token);
  return value >= low && value <= high && (low < 0n || !token.startsWith('-'));
}

const isNumber = (value: unknown): value is number | bigint => typeof value === 'number' || typeof value === 'bigint';

/** A number as the document spells it. */
const tokenOf = (value: number | bigint, { at, numbers }: Place): string => numbers?.get(at)?.text ?? String(value);

/** Numbers are shown as they are: many have the right type and are too large, or not whole. */
function mismatch(value: unknown, place: Place, expected: string): string {
  const got = isNumber(value) ? `number ${tokenOf(value, place)}` : jsonKind(value);
  return wrongTypeText(expected, got, place.at);
}
