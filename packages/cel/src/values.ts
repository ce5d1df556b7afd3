/**
 * CEL values at run time. Booleans, strings, null, lists (arrays) and string-keyed objects are what JSON has, so bound
 * data is used as it is. An int is a JS number while that is exact and a bigint beyond; every other number is boxed. A raw
 * JSON number that is no int therefore needs `fromJson` where it is read; nothing else does.
 */
import { CelEvaluationError, noOverload } from './errors.ts';
import { type CelType, runtimeName } from './types.ts';

/** A 64-bit floating point number. */
export class CelDouble {
  readonly value: number;
  constructor(value: number) {
    this.value = value;
  }
}

/** An unsigned 64-bit integer. */
export class CelUint {
  readonly value: bigint;
  constructor(value: bigint) {
    this.value = value;
  }
}

/** A point in time: whole nanoseconds since 1970, years 1 to 9999. */
export class CelTimestamp {
  readonly nanos: bigint;
  constructor(nanos: bigint) {
    if (nanos < MIN_TIMESTAMP || nanos > MAX_TIMESTAMP) throw new CelEvaluationError('timestamp overflow');
    this.nanos = nanos;
  }
}

/** A span of time in nanoseconds; an int64, as Go's. */
export class CelDuration {
  readonly nanos: bigint;
  constructor(nanos: bigint) {
    if (nanos < MIN_INT || nanos > MAX_INT) throw new CelEvaluationError('duration overflow');
    this.nanos = nanos;
  }
}

/** A type as a value: `type(x)`, `int`. Compared by its runtime name. */
export class CelTypeValue {
  readonly name: string;
  constructor(name: string) {
    this.name = name;
  }
}

/** A value that may be missing. */
export class CelOptional {
  readonly value: unknown;
  /** `undefined` is no CEL value, so it can mean "none". */
  constructor(value: unknown) {
    this.value = value;
  }
}
export const NONE = new CelOptional(undefined);

/** An optional to bind: `undefined` is none (`oldSelf` with optionalOldSelf). */
export const celOptional = (value: unknown): unknown => (value === undefined ? NONE : new CelOptional(value));

/** A value that only its library looks into. */
export class CelOpaque<T = unknown> {
  readonly typeName: string;
  readonly value: T;
  /** What costs count it as, where that is not 1. */
  readonly size: number;
  constructor(typeName: string, value: T, size = 1) {
    this.typeName = typeName;
    this.value = value;
    this.size = size;
  }
}

/** A map made in CEL, whose keys may be other than strings. Keyed by the canonical key, holds the key as written. */
export class CelMap {
  readonly entries: Map<unknown, readonly [key: unknown, value: unknown]> = new Map();
}

/** An object made in CEL: `Object.spec{replicas: 1}`. */
export class CelStruct {
  readonly typeName: string;
  readonly fields: ReadonlyMap<string, unknown>;
  constructor(typeName: string, fields: ReadonlyMap<string, unknown>) {
    this.typeName = typeName;
    this.fields = fields;
  }
}

export const MIN_INT = -(1n << 63n);
export const MAX_INT = (1n << 63n) - 1n;
export const MAX_UINT = (1n << 64n) - 1n;
const SECOND = 1_000_000_000n;
const MIN_TIMESTAMP = -62_135_596_800n * SECOND;
const MAX_TIMESTAMP = 253_402_300_799n * SECOND + 999_999_999n;

export const isInt = (value: unknown): value is number | bigint =>
  typeof value === 'number' || typeof value === 'bigint';

/** The int of a bigint that fits 64 bits. */
export const intFromBigInt = (value: bigint): number | bigint =>
  value >= -9007199254740991n && value <= 9007199254740991n ? Number(value) : value;

/** @throws CelEvaluationError when it does not fit 64 bits */
export function checkedInt(value: bigint): number | bigint {
  if (value < MIN_INT || value > MAX_INT) throw new CelEvaluationError('integer overflow');
  return intFromBigInt(value);
}

/** @throws CelEvaluationError when it does not fit 64 bits without sign */
export function checkedUint(value: bigint): CelUint {
  if (value < 0n || value > MAX_UINT) throw new CelEvaluationError('unsigned integer overflow');
  return new CelUint(value);
}

/** A raw JSON value as a CEL value. */
export function fromJson(value: unknown): unknown {
  if (typeof value !== 'number' || Number.isSafeInteger(value)) return value;
  // Go's decoder keeps what fits an int64 as one; anything with a fraction or beyond is a float.
  if (Number.isInteger(value) && value >= -(2 ** 63) && value < 2 ** 63) return BigInt(value);
  return new CelDouble(value);
}

/** A raw JSON number where the schema says `number`. */
export const doubleFromJson = (raw: unknown): unknown => (isInt(raw) ? new CelDouble(Number(raw)) : raw);

/** An object of bound data: a map from strings. */
export function isPlainObject(value: unknown): value is Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

const PRIMITIVES: Readonly<Record<string, string>> = {
  boolean: 'bool',
  string: 'string',
  number: 'int',
  bigint: 'int',
};

/** What `type(x)` prints, and messages say. */
export function runtimeTypeName(value: unknown): string {
  if (typeof value !== 'object') return PRIMITIVES[typeof value] ?? 'map';
  if (value === null) return 'null_type';
  if (Array.isArray(value)) return 'list';
  if (value instanceof CelDouble) return 'double';
  if (value instanceof CelUint) return 'uint';
  if (value instanceof Uint8Array) return 'bytes';
  if (value instanceof CelTimestamp) return 'google.protobuf.Timestamp';
  if (value instanceof CelDuration) return 'google.protobuf.Duration';
  if (value instanceof CelTypeValue) return 'type';
  if (value instanceof CelOptional) return 'optional_type';
  if (value instanceof CelOpaque || value instanceof CelStruct) return value.typeName;
  return 'map';
}

/**
 * Whether a value may be passed where a type is declared. As cel-go's dispatch, of lists and maps it looks at the first
 * element only.
 */
export function matchesType(type: CelType, value: unknown): boolean {
  switch (type.kind) {
    case 'dyn':
    case 'any':
    case 'param':
      return true;
    case 'bool':
      return typeof value === 'boolean';
    case 'int':
      return isInt(value);
    case 'string':
      return typeof value === 'string';
    case 'list':
      return Array.isArray(value) && (value.length === 0 || matchesType(type.params[0]!, fromJson(value[0])));
    case 'map':
      return matchesMap(type, value);
    case 'wrapper':
      return value === null || matchesType(type.params[0]!, value);
    case 'object':
      return value instanceof CelStruct ? value.typeName === type.name : isPlainObject(value);
    default:
      return runtimeTypeName(value) === runtimeName(type);
  }
}

function matchesMap({ params }: CelType, value: unknown): boolean {
  if (value instanceof CelMap) {
    const first = value.entries.values().next().value;
    return first === undefined || (matchesType(params[0]!, first[0]) && matchesType(params[1]!, first[1]));
  }
  if (!isPlainObject(value)) return false;
  for (const key in value) return matchesType(params[0]!, key) && matchesType(params[1]!, fromJson(value[key]));
  return true;
}

/** Number of characters, bytes, items or entries; undefined for what has no size. Characters are code points. */
export function sizeOf(value: unknown): number | undefined {
  if (typeof value === 'string') return codePoints(value);
  if (Array.isArray(value) || value instanceof Uint8Array) return value.length;
  if (value instanceof CelMap) return value.entries.size;
  if (isPlainObject(value)) return Object.keys(value).length;
  return undefined;
}

/** Length in code points. */
export function codePoints(text: string): number {
  let count = text.length;
  for (let index = 0; index < text.length - 1; index++) {
    const code = text.charCodeAt(index);
    if (code >= 0xd800 && code < 0xdc00) {
      const next = text.charCodeAt(index + 1);
      if (next >= 0xdc00 && next < 0xe000) {
        count--;
        index++;
      }
    }
  }
  return count;
}

/** What is said when no function of a name takes the values: operators are not named, functions with the types of the values. */
export const noFit = (name: string, values: readonly unknown[]): CelEvaluationError =>
  /^[^\W_]/.test(name)
    ? new CelEvaluationError(`no such overload: ${name}(${values.map(runtimeTypeName).join(', ')})`)
    : noOverload();
