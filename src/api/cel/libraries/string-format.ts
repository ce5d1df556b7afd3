/** `'%s is %d'.format([...])`. */
import { CelEvaluationError } from '../errors.ts';
import { formatDuration, formatTimestamp } from '../time.ts';
import {
  CelDouble,
  CelDuration,
  CelMap,
  CelTimestamp,
  CelTypeValue,
  CelUint,
  fromJson,
  isInt,
  isPlainObject,
  runtimeTypeName,
} from '../values.ts';
import { utf8Bytes, utf8Text } from './bytes.ts';

/** Digits after the point when none are asked for, and the most that can be asked for. */
const PRECISION = 6;
const MAX_PRECISION = 1000;

const fail = (message: string): never => {
  throw new CelEvaluationError(message);
};

/** @throws CelEvaluationError when a clause does not fit its argument */
export function formatString(format: string, args: readonly unknown[]): string {
  let next = 0;
  return format.replace(/%(?:%|(?:\.(\d+))?([\s\S]?))/g, (clause, precision: string | undefined, verb: string) => {
    if (clause === '%%') return '%';
    if (verb === '') fail(`unexpected end of string`);
    if (!'sdfebxXo'.includes(verb)) {
      fail(`could not parse formatting clause: unrecognized formatting clause "${verb}"`);
    }
    if (next >= args.length) fail(`index ${next} out of range`);
    const digits = precision === undefined ? PRECISION : Number(precision);
    if (digits > MAX_PRECISION)
      fail(`could not parse formatting clause: precision ${digits} exceeds maximum ${MAX_PRECISION}`);
    return clauseText(verb, fromJson(args[next++]), digits);
  });
}

function clauseText(verb: string, value: unknown, precision: number): string {
  switch (verb) {
    case 's':
      return text(value);
    case 'd':
      return decimal(value);
    case 'f':
      return fixedPoint(value, precision);
    case 'e':
      return scientific(value, precision);
    case 'b':
      return typeof value === 'boolean' ? String(Number(value)) : radix(value, 2, 'binary', 'integers and bools');
    case 'o':
      return radix(value, 8, 'octal', 'integers');
    default:
      return verb === 'x' ? hex(value) : hex(value).toUpperCase();
  }
}

function text(value: unknown): string {
  if (typeof value === 'string') return value;
  if (value === null || typeof value === 'boolean' || isInt(value)) return String(value);
  if (value instanceof CelUint) return String(value.value);
  if (value instanceof CelDouble) return special(value.value) ?? plainDouble(value.value);
  if (value instanceof Uint8Array) return utf8Text(value);
  if (value instanceof CelTimestamp) return formatTimestamp(value);
  if (value instanceof CelDuration) return formatDuration(value);
  if (value instanceof CelTypeValue) return value.name;
  if (Array.isArray(value)) return `[${value.map((item) => text(fromJson(item))).join(', ')}]`;
  if (value instanceof CelMap) return mapText([...value.entries.values()]);
  if (isPlainObject(value)) return mapText(Object.entries(value));
  return fail(
    `error during formatting: string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps, was given ${runtimeTypeName(value)}`,
  );
}

function mapText(entries: readonly (readonly [unknown, unknown])[]): string {
  const parts = entries.map(([key, value]) => [text(key), text(fromJson(value))] as const);
  parts.sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${parts.map(([key, value]) => `${key}: ${value}`).join(', ')}}`;
}

function special(value: number): string | undefined {
  if (Number.isNaN(value)) return 'NaN';
  return Number.isFinite(value) ? undefined : value > 0 ? 'Infinity' : '-Infinity';
}

const plainDouble = (value: number): string =>
  Object.is(value, -0) ? '-0' : String(value).replace(/e([+-])(\d)$/, 'e$10$2');

function decimal(value: unknown): string {
  if (isInt(value)) return String(value);
  if (value instanceof CelUint) return String(value.value);
  const infinite = value instanceof CelDouble ? special(value.value) : undefined;
  return (
    infinite ??
    fail(`error during formatting: decimal clause can only be used on integers, was given ${runtimeTypeName(value)}`)
  );
}

/** The number of a clause; texts only as `NaN` and the infinities. */
function number(value: unknown, clause: string): number {
  if (value instanceof CelDouble) return value.value;
  if (isInt(value)) return Number(value);
  if (value instanceof CelUint) return Number(value.value);
  if (value === 'NaN') return Number.NaN;
  if (value === 'Infinity') return Number.POSITIVE_INFINITY;
  if (value === '-Infinity') return Number.NEGATIVE_INFINITY;
  return fail(
    `error during formatting: ${clause} clause can only be used on doubles, was given ${runtimeTypeName(value)}`,
  );
}

function fixedPoint(value: unknown, precision: number): string {
  const amount = number(value, 'fixed-point');
  const known = special(amount);
  if (known !== undefined) return known;
  if (precision <= 100)
    return Math.abs(amount) < 1e21 ? roundEven(amount, precision) : BigInt(amount) + fraction(precision);
  return amount.toFixed(100) + '0'.repeat(precision - 100);
}

const fraction = (precision: number): string => (precision === 0 ? '' : `.${'0'.repeat(precision)}`);

/** Go rounds an exact tie to the even digit; JS away from zero. Ties are exact only in few digits. */
function roundEven(value: number, precision: number): string {
  if (precision < 20) {
    const scaled = Math.abs(value) * 10 ** precision;
    if (Number.isSafeInteger(scaled * 2) && scaled % 1 === 0.5) {
      const even = Math.floor(scaled) % 2 === 0 ? Math.floor(scaled) : Math.ceil(scaled);
      return (Math.sign(value) * (even / 10 ** precision)).toFixed(precision);
    }
  }
  return value.toFixed(precision);
}

function scientific(value: unknown, precision: number): string {
  const amount = number(value, 'scientific');
  return special(amount) ?? amount.toExponential(Math.min(precision, 100)).replace(/e([+-])(\d)$/, 'e$10$2');
}

function radix(value: unknown, base: number, clause: string, accepted: string): string {
  if (isInt(value)) return value.toString(base);
  if (value instanceof CelUint) return value.value.toString(base);
  return fail(
    `error during formatting: ${clause} clause can only be used on ${accepted}, was given ${runtimeTypeName(value)}`,
  );
}

function hex(value: unknown): string {
  const bytes = typeof value === 'string' ? utf8Bytes(value) : value;
  if (bytes instanceof Uint8Array) return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
  return radix(value, 16, 'hex', 'integers, byte buffers, and strings');
}
