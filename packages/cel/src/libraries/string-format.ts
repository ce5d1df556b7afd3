/** `'%s is %d'.format([...])`. */
import { goQuote } from '@coracle/apimachinery/meta/go-text';
import { fail } from '../errors.ts';
import { formatDuration, formatTimestamp } from '../time.ts';
import { stringOf } from '../to-string.ts';
import {
  CelDouble,
  CelDuration,
  CelMap,
  CelOpaque,
  CelOptional,
  CelStruct,
  CelTimestamp,
  CelUint,
  fromJson,
  isInt,
  isPlainObject,
  runtimeTypeName,
} from '../values.ts';
import { utf8Bytes, utf8Text } from './bytes.ts';
import { CLAUSES, replaceClauses, type Verb } from './format-clauses.ts';

/** Digits after the point when none are asked for, and the most that are written. */
const PRECISION = 6;
const MAX_PRECISION = 1000;

const misfit = (verb: Verb, value: unknown): never =>
  fail(`error during formatting: ${CLAUSES[verb].refusal}, was given ${runtimeTypeName(value)}`);

/** @throws CelEvaluationError when a clause does not fit its argument */
export const formatString = (format: string, args: readonly unknown[]): string =>
  replaceClauses(format, args.length, (verb, index, precision = PRECISION) =>
    WRITERS[verb](fromJson(args[index]), Math.min(precision, MAX_PRECISION)),
  );

const WRITERS: Readonly<Record<Verb, (value: unknown, precision: number) => string>> = {
  s: (value) => text(value),
  d: (value) => radix(value, 10, 'd'),
  f: (value, precision) => fixedPoint(value, precision),
  e: (value, precision) => scientific(value, precision),
  b: (value) => (typeof value === 'boolean' ? String(Number(value)) : radix(value, 2, 'b')),
  o: (value) => radix(value, 8, 'o'),
  x: (value) => hex(value),
  X: (value) => hex(value).toUpperCase(),
};

function text(value: unknown): string {
  if (Array.isArray(value)) return listText(value);
  if (value instanceof CelMap) return mapText([...value.entries.values()]);
  if (value instanceof Uint8Array) return utf8Text(value);
  if (isPlainObject(value)) return mapText(Object.entries(value));
  return isMute(value) ? misfit('s', value) : stringOf(value);
}

/** What has no text. */
const isMute = (value: unknown): boolean =>
  value instanceof CelOptional || value instanceof CelOpaque || value instanceof CelStruct;

const listText = (list: readonly unknown[]): string => `[${list.map((item) => inner(fromJson(item))).join(', ')}]`;

function mapText(entries: readonly (readonly [unknown, unknown])[]): string {
  const parts = entries.map(([key, value]) => [keyText(key), inner(fromJson(value))] as const);
  parts.sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${parts.map(([key, value]) => `${key}:${value}`).join(', ')}}`;
}

function keyText(key: unknown): string {
  if (typeof key === 'string') return goQuote(key);
  if (typeof key === 'boolean' || isInt(key) || key instanceof CelUint) return stringOf(key);
  return fail(`error during formatting: no formatting function for map key of type ${runtimeTypeName(key)}`);
}

/** Inside of lists and maps values look as an expression would write them. */
function inner(value: unknown): string {
  if (typeof value === 'string') return goQuote(value);
  if (value instanceof CelDouble) {
    return Number.isFinite(value.value) ? plainFixed(value.value, PRECISION) : `"${stringOf(value)}"`;
  }
  if (value instanceof Uint8Array) return `b${goQuote(utf8Text(value))}`;
  if (value instanceof CelTimestamp) return `timestamp("${formatTimestamp(value)}")`;
  if (value instanceof CelDuration) return `duration("${formatDuration(value)}")`;
  return isMute(value)
    ? fail(`error during formatting: no formatting function for ${runtimeTypeName(value)}`)
    : text(value);
}

const SPECIAL = ['NaN', 'Infinity', '-Infinity'];

/** The number of a clause; texts only as `NaN` and the infinities. */
function number(value: unknown, verb: Verb): number {
  if (value instanceof CelDouble) return value.value;
  return typeof value === 'string' && SPECIAL.includes(value) ? Number(value) : misfit(verb, value);
}

/** As English writes what is no finite number. */
function unusual(value: number): string | undefined {
  if (Number.isNaN(value)) return 'NaN';
  return Number.isFinite(value) ? undefined : value > 0 ? '∞' : '-∞';
}

/** As English writes it: with commas at the thousands. */
function fixedPoint(value: unknown, precision: number): string {
  const amount = number(value, 'f');
  const [whole, fraction] = (unusual(amount) ?? plainFixed(amount, precision)).split('.');
  const grouped = whole!.replace(/\B(?=(?:[0-9]{3})+$)/g, ',');
  return fraction === undefined ? grouped : `${grouped}.${fraction}`;
}

function plainFixed(amount: number, precision: number): string {
  if (precision > 100) return amount.toFixed(100) + '0'.repeat(precision - 100);
  return Math.abs(amount) < 1e21 ? roundEven(amount, precision) : BigInt(amount) + zeros(precision);
}

const zeros = (precision: number): string => (precision === 0 ? '' : `.${'0'.repeat(precision)}`);

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

/** Raised. */
const DIGITS = '⁰¹²³⁴⁵⁶⁷⁸⁹';

/** As upstream has it: always six digits; what is asked for is the width. */
function scientific(value: unknown, width: number): string {
  const amount = number(value, 'e');
  const [mantissa, exponent = ''] = amount.toExponential(PRECISION).split('e');
  const power = exponent.replace('+', '').replace(/^(-?)(\d)$/, '$10$2');
  const raised = Array.from(power, (digit) => (digit === '-' ? '⁻' : DIGITS[Number(digit)])).join('');
  return (unusual(amount) ?? `${mantissa}×10${raised}`).padStart(width);
}

function radix(value: unknown, base: number, verb: Verb): string {
  if (isInt(value)) return value.toString(base);
  return value instanceof CelUint ? value.value.toString(base) : misfit(verb, value);
}

function hex(value: unknown): string {
  const bytes = typeof value === 'string' ? utf8Bytes(value) : value;
  return bytes instanceof Uint8Array ? Buffer.from(bytes).toString('hex') : radix(value, 16, 'x');
}
