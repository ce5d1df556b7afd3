/**
 * Go's decoder in words: walks a value that does not fit as the decoder does and says what that would answer. A member
 * of the wrong JSON type is remembered and the walk goes on; a Go type with a decoder of its own (Quantity, Time) ends it
 * and has the last word.
 */
import { isBase64 } from '../meta/base64.ts';
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
  /** The struct that errors name instead, within a type that has its own decoder. */
  readonly pinned?: string | undefined;
}

const ROOT: Place = { struct: '', path: '', at: '' };

/** Ends the walk. */
class Abort extends Error {}

/** What Go says of the value, or undefined when it decodes. */
export function wordedProblem(schema: Schema, value: unknown, numbers?: OddNumbers): string | undefined {
  const walk = new DecodeWalk(numbers);
  try {
    walk.decode(schema, value, ROOT);
  } catch (error) {
    if (error instanceof Abort) return error.message;
    throw error;
  }
  return walk.first;
}

export const hasOwnDecoder = (schema: Schema): boolean => ownDecoder(schema) !== undefined;

const ownDecoder = (schema: Schema): OwnDecoder | undefined => {
  const name = goTypeName(schema);
  return name === undefined ? undefined : OWN_DECODERS.get(name);
};

type OwnDecoder = (walk: DecodeWalk, value: unknown, place: Place, schema: Schema) => void;

/** Go types with their own decoder. */
const OWN_DECODERS = new Map<string, OwnDecoder>([
  ['Quantity', (walk, value, place) => walk.quantity(value, place)],
  ['IntOrString', (walk, value, place) => walk.intOrString(value, place)],
  ['Time', (walk, value, place) => walk.time(value, place, 'time')],
  ['MicroTime', (walk, value, place) => walk.time(value, place, 'micro')],
  ['RawExtension', () => {}],
  ['JSON', () => {}],
  ['FieldsV1', () => {}],
  ['JSONSchemaPropsOrBool', schemaOrBool],
  ['JSONSchemaPropsOrArray', (walk, value, place, schema) => walk.form(schema, value, place)],
  ['JSONSchemaPropsOrStringArray', (walk, value, place, schema) => walk.form(schema, value, place)],
]);

function schemaOrBool(walk: DecodeWalk, value: unknown, place: Place, schema: Schema): void {
  if (isJsonObject(value)) walk.form(schema, value, place);
  else if (typeof value !== 'boolean') throw new Abort('boolean or JSON schema expected');
}

class DecodeWalk {
  readonly #numbers: OddNumbers | undefined;
  /** The first member that does not fit. */
  first: string | undefined;

  constructor(numbers: OddNumbers | undefined) {
    this.#numbers = numbers;
  }

  decode(schema: Schema, value: unknown, place: Place): void {
    if (value === null || value === undefined) return;
    const own = ownDecoder(schema);
    if (own !== undefined) {
      own(this, value, place, schema);
      return;
    }
    // Of any size, and with a fraction: what no webhook makes text of is refused as no whole number.
    if (isNumber(value) && isQuantitySchema(schema)) return;
    const isEither = schema['x-kubernetes-int-or-string'] || schema.format === 'int-or-string';
    if (isEither) this.intOrString(value, place);
    else this.#plain(schema, value, place);
  }

  #plain(schema: Schema, value: unknown, place: Place): void {
    switch (schema.type) {
      case 'string':
        this.#string(schema, value, place);
        break;
      case 'boolean':
        if (typeof value !== 'boolean') this.#mismatch(schema, value, place);
        break;
      case 'integer':
        this.#integer(schema, value, place);
        break;
      case 'number':
        this.#number(schema, value, place);
        break;
      case 'array':
        if (Array.isArray(value)) this.#array(schema, value, place);
        else this.#mismatch(schema, value, place);
        break;
      case 'object':
        if (isJsonObject(value)) this.#object(schema, value, place);
        else this.#mismatch(schema, value, place);
        break;
      case undefined:
        break;
    }
  }

  quantity(value: unknown, place: Place): void {
    // Any other JSON is text that is no quantity.
    if (typeof value !== 'string' && typeof value !== 'number' && typeof value !== 'bigint')
      throw new Abort(NO_QUANTITY);
    const text = (typeof value === 'string' ? value : this.#token(value, place)).trim();
    if (isQuantity(text)) return;
    try {
      parseQuantity(text);
    } catch (error) {
      throw new Abort((error as Error).message);
    }
  }

  /** What such a decoder finds wrong inside is its error, reported with the place it stands at. */
  form(schema: Schema, value: unknown, place: Place): void {
    const form = schema[FORMS] && formOf(schema[FORMS], value);
    if (form === undefined) return;
    const inside = new DecodeWalk(this.#numbers);
    inside.decode(form, value, { ...place, pinned: place.pinned ?? place.struct });
    if (inside.first !== undefined) throw new Abort(inside.first);
  }

  intOrString(value: unknown, place: Place): void {
    if (typeof value === 'string') return;
    if (isNumber(value) && isInteger(this.#token(value, place), RANGES.int32)) return;
    const kind = isNumber(value) ? `number ${this.#token(value, place)}` : jsonKind(value);
    throw new Abort(sentence(kind, 'int32', place));
  }

  time(value: unknown, place: Place, kind: 'time' | 'micro'): void {
    if (typeof value !== 'string') throw new Abort(sentence(jsonKind(value), 'string', place));
    const time = parseGoTime(value, kind);
    if (typeof time === 'string') throw new Abort(time);
  }

  #string(schema: Schema, value: unknown, place: Place): void {
    if (typeof value !== 'string') this.#mismatch(schema, value, place);
    else if (schema.format === 'date-time') this.time(value, place, 'time');
    else if (schema.format === 'byte') this.first ??= base64Problem(value);
  }

  #integer(schema: Schema, value: unknown, place: Place): void {
    if (!isNumber(value)) {
      this.#mismatch(schema, value, place);
      return;
    }
    const token = this.#token(value, place);
    const range = schema[UNSIGNED] ? RANGES.uint32 : schema.format === 'int32' ? RANGES.int32 : RANGES.int64;
    if (!isInteger(token, range)) this.first ??= sentence(`number ${token}`, goType(schema), place);
  }

  #number(schema: Schema, value: unknown, place: Place): void {
    if (!isNumber(value)) this.#mismatch(schema, value, place);
    else if (value === Number.POSITIVE_INFINITY || value === Number.NEGATIVE_INFINITY) {
      this.first ??= sentence(`number ${this.#token(value, place)}`, 'float64', place);
    }
  }

  /** A number as the document spells it. */
  #token(value: number | bigint, place: Place): string {
    return this.#numbers?.get(place.at)?.text ?? String(value);
  }

  #array(schema: Schema, value: readonly unknown[], place: Place): void {
    if (schema.items === undefined) return;
    for (let i = 0; i < value.length; i++) {
      this.decode(schema.items, value[i], { ...place, at: `${place.at}[${i}]` });
    }
  }

  #object(schema: Schema, object: Readonly<Record<string, unknown>>, place: Place): void {
    const { properties, additionalProperties } = schema;
    const struct = place.pinned ?? goTypeName(schema) ?? place.struct;
    const inside = (name: string, path: string): string => (path === '' ? name : `${path}.${name}`);
    const keys = Object.keys(object);
    for (const key of keys) {
      const at = inside(key, place.at);
      if (properties !== undefined && Object.hasOwn(properties, key)) {
        const path = inside(key, place.path);
        this.decode(properties[key]!, object[key], { ...place, struct, path, at });
      } else if (typeof additionalProperties === 'object') {
        this.decode(additionalProperties, object[key], { ...place, at });
      }
    }
  }

  #mismatch(schema: Schema, value: unknown, place: Place): void {
    this.first ??= sentence(jsonKind(value), goType(schema), place);
  }
}

const NO_QUANTITY = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

/** Line breaks inside base64 do not count. */
const base64Problem = (text: string): string | undefined =>
  isBase64(/[\r\n]/.test(text) ? text.replace(/[\r\n]/g, '') : text) ? undefined : 'illegal base64 data';

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

function jsonKind(value: unknown): string {
  if (Array.isArray(value)) return 'array';
  return typeof value === 'boolean' ? 'bool' : typeof value === 'bigint' ? 'number' : typeof value;
}

function sentence(kind: string, type: string, place: Place): string {
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
