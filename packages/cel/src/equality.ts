/** Equality and order of CEL values. Numbers of different kinds compare by value. */
import { noOverload } from './errors.ts';
import { mapFind, mapKeys } from './map-access.ts';
import {
  CelDouble,
  CelDuration,
  CelMap,
  CelOpaque,
  CelOptional,
  CelStruct,
  CelTimestamp,
  CelTypeValue,
  CelUint,
  fromJson,
  isInt,
  isPlainObject,
} from './values.ts';

const opaqueEquality = new Map<string, (a: unknown, b: unknown) => boolean>();

/** How a library compares its own values; absent: by `===`. Called once for each type while its library is loaded. */
export function defineEquality(typeName: string, equals: (a: unknown, b: unknown) => boolean): void {
  opaqueEquality.set(typeName, equals);
}

/** `a == b`. Values of different kinds are unequal, never an error. */
export function equals(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  // Where both are primitive, a raw number that is no int can only be equal to itself.
  if (typeof a !== 'object' && typeof b !== 'object') return false;
  if (a === null || b === null) return false;
  if (isNumber(a) && isNumber(b)) return compareNumbers(a, b) === 0;
  if (Array.isArray(a)) return Array.isArray(b) && equalLists(a, b);
  if (isMap(a)) return isMap(b) && equalMaps(a, b);
  return equalBoxes(a, b);
}

const isNumber = (value: unknown): boolean => isInt(value) || value instanceof CelDouble || value instanceof CelUint;
type AnyMap = CelMap | Readonly<Record<string, unknown>>;
const isMap = (value: unknown): value is AnyMap => value instanceof CelMap || isPlainObject(value);

function equalLists(a: readonly unknown[], b: readonly unknown[]): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (!equals(fromJson(a[i]), fromJson(b[i]))) return false;
  return true;
}

function equalMaps(a: AnyMap, b: AnyMap): boolean {
  const keys = mapKeys(a);
  if (keys.length !== mapKeys(b).length) return false;
  return keys.every((key) => {
    const other = mapFind(b, key);
    return other !== undefined && equals(mapFind(a, key), other);
  });
}

function equalBoxes(a: unknown, b: unknown): boolean {
  if (a instanceof CelTimestamp) return b instanceof CelTimestamp && a.nanos === b.nanos;
  if (a instanceof CelDuration) return b instanceof CelDuration && a.nanos === b.nanos;
  if (a instanceof Uint8Array) return b instanceof Uint8Array && compareBytes(a, b) === 0;
  if (a instanceof CelTypeValue) return b instanceof CelTypeValue && a.name === b.name;
  if (a instanceof CelOptional) {
    if (!(b instanceof CelOptional)) return false;
    if (a.value === undefined || b.value === undefined) return a.value === b.value;
    return equals(a.value, b.value);
  }
  if (a instanceof CelOpaque) {
    if (!(b instanceof CelOpaque) || a.typeName !== b.typeName) return false;
    return opaqueEquality.get(a.typeName)?.(a.value, b.value) ?? a.value === b.value;
  }
  if (a instanceof CelStruct) {
    if (!(b instanceof CelStruct) || a.typeName !== b.typeName || a.fields.size !== b.fields.size) return false;
    return [...a.fields].every(([name, value]) => b.fields.has(name) && equals(value, b.fields.get(name)));
  }
  return false;
}

/** Negative, zero, positive; NaN when a number is no number. */
function compareNumbers(a: unknown, b: unknown): number {
  if (typeof a === 'number' && typeof b === 'number') return a < b ? -1 : a > b ? 1 : 0;
  let left = plainNumber(a);
  let right = plainNumber(b);
  if (a instanceof CelDouble !== b instanceof CelDouble) {
    // As cel-go: an int is rounded to a double before it is compared with one.
    left = Number(left);
    right = Number(right);
  }
  if (left < right) return -1;
  if (left > right) return 1;
  // biome-ignore lint/suspicious/noDoubleEquals: a bigint and a number of the same value
  return left == right ? 0 : Number.NaN;
}

const plainNumber = (value: unknown): number | bigint =>
  value instanceof CelDouble || value instanceof CelUint ? value.value : (value as number | bigint);

/** Order of strings by code point: UTF-16 order differs beyond the basic plane. */
function compareStrings(a: string, b: string): number {
  if (a === b) return 0;
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const x = a.charCodeAt(i);
    const y = b.charCodeAt(i);
    if (x === y) continue;
    const wideX = x >= 0xd800 && x < 0xe000;
    const wideY = y >= 0xd800 && y < 0xe000;
    if (wideX !== wideY) return wideX ? 1 : -1;
    return x < y ? -1 : 1;
  }
  return a.length - b.length;
}

function compareBytes(a: Uint8Array, b: Uint8Array): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) if (a[i] !== b[i]) return a[i]! - b[i]!;
  return a.length - b.length;
}

/**
 * The order of two values: negative, zero, positive, or NaN.
 * @throws CelEvaluationError `no such overload` for values that have no order
 */
export function compare(a: unknown, b: unknown): number {
  if (typeof a === 'string' && typeof b === 'string') return compareStrings(a, b);
  if (isNumber(a) && isNumber(b)) return compareNumbers(a, b);
  if (a instanceof CelTimestamp && b instanceof CelTimestamp) return compareNumbers(a.nanos, b.nanos);
  if (a instanceof CelDuration && b instanceof CelDuration) return compareNumbers(a.nanos, b.nanos);
  if (typeof a === 'boolean' && typeof b === 'boolean') return Number(a) - Number(b);
  if (a instanceof Uint8Array && b instanceof Uint8Array) return compareBytes(a, b);
  throw noOverload();
}
