/** `'%s is %d'.format([...])`. */
import { goQuote } from '../../meta/go-text.ts';
import { CelEvaluationError } from '../errors.ts';
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
  CelTypeValue,
  CelUint,
  fromJson,
  isInt,
  isPlainObject,
  runtimeTypeName,
} from '../values.ts';
import { utf8Bytes, utf8Text } from './bytes.ts';

/** Digits after the point when none are asked for, and the most that are written. */
const PRECISION = 6;
const MAX_PRECISION = 1000;

const fail = (message: string): never => {
  throw new CelEvaluationError(message);
};
const misfit = (message: string, value: unknown): never =>
  fail(`error during formatting: ${message}, was given ${runtimeTypeName(value)}`);

/** @throws CelEvaluationError when a clause does not fit its argument */
export function formatString(format: string, args: readonly unknown[]): string {
  let next = 0;
  return format.replace(/%(?:%|(\.\d*)?([\s\S]?))/gu, (clause, point: string | undefined, verb: string) => {
    if (clause === '%%') return '%';
    if (next >= args.length) fail(`index ${next} out of range`);
    if (clause === '%') fail('unexpected end of string');
    const digits = point === undefined ? PRECISION : precisionOf(point, verb);
    if (verb === '' || !'sdfebxXo'.includes(verb)) {
      fail(`could not parse formatting clause: unrecognized formatting clause "${verb}"`);
    }
    return clauseText(verb, fromJson(args[next++]), digits);
  });
}

function precisionOf(point: string, verb: string): number {
  const because = 'could not parse formatting clause: error while parsing precision: ';
  if (verb === '') fail(`${because}could not find end of precision specifier`);
  if (point === '.')
    fail(`${because}error while converting precision to integer: strconv.Atoi: parsing "": invalid syntax`);
  return Math.min(Number(point.slice(1)), MAX_PRECISION);
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
      if (typeof value === 'boolean') return String(Number(value));
      return radix(value, 2, 'only integers and bools can be formatted as binary');
    case 'o':
      return radix(value, 8, 'octal clause can only be used on integers');
    default:
      return verb === 'x' ? hex(value) : hex(value).toUpperCase();
  }
}

function text(value: unknown): string {
  if (Array.isArray(value)) return listText(value);
  if (value instanceof CelMap) return mapText([...value.entries.values()]);
  if (value instanceof Uint8Array) return utf8Text(value);
  if (isPlainObject(value)) return mapText(Object.entries(value));
  if (
    value === null ||
    typeof value !== 'object' ||
    value instanceof CelDouble ||
    value instanceof CelUint ||
    value instanceof CelTimestamp ||
    value instanceof CelDuration ||
    value instanceof CelTypeValue
  ) {
    return stringOf(value);
  }
  return misfit(
    'string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps',
    value,
  );
}

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
  if (value instanceof CelOptional || value instanceof CelOpaque || value instanceof CelStruct) {
    return fail(`error during formatting: no formatting function for ${runtimeTypeName(value)}`);
  }
  return text(value);
}

function decimal(value: unknown): string {
  if (isInt(value) || value instanceof CelUint) return stringOf(value);
  return misfit('decimal clause can only be used on integers', value);
}

const SPECIAL: Readonly<Record<string, number>> = {
  NaN: Number.NaN,
  Infinity: Number.POSITIVE_INFINITY,
  '-Infinity': Number.NEGATIVE_INFINITY,
};

/** The number of a clause; texts only as `NaN` and the infinities. */
function number(value: unknown, clause: string): number {
  if (value instanceof CelDouble) return value.value;
  const special = typeof value === 'string' && Object.hasOwn(SPECIAL, value) ? SPECIAL[value] : undefined;
  return (
    special ?? (Number.isNaN(special) ? Number.NaN : misfit(`${clause} clause can only be used on doubles`, value))
  );
}

/** As English writes what is no finite number. */
function unusual(value: number): string | undefined {
  if (Number.isNaN(value)) return 'NaN';
  return Number.isFinite(value) ? undefined : value > 0 ? '∞' : '-∞';
}

/** As English writes it: with commas at the thousands. */
function fixedPoint(value: unknown, precision: number): string {
  const amount = number(value, 'fixed-point');
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

const SUPERSCRIPT: Readonly<Record<string, string>> = {
  '-': '⁻',
  0: '⁰',
  1: '¹',
  2: '²',
  3: '³',
  4: '⁴',
  5: '⁵',
  6: '⁶',
  7: '⁷',
  8: '⁸',
  9: '⁹',
};

/** As upstream has it: always six digits; what is asked for is the width. */
function scientific(value: unknown, width: number): string {
  const amount = number(value, 'scientific');
  const [mantissa, exponent = ''] = amount.toExponential(PRECISION).split('e');
  const power = exponent.replace('+', '').replace(/^(-?)(\d)$/, '$10$2');
  const raised = Array.from(power, (digit) => SUPERSCRIPT[digit]).join('');
  return (unusual(amount) ?? `${mantissa}×10${raised}`).padStart(width);
}

function radix(value: unknown, base: number, accepted: string): string {
  if (isInt(value)) return value.toString(base);
  return value instanceof CelUint ? value.value.toString(base) : misfit(accepted, value);
}

function hex(value: unknown): string {
  const bytes = typeof value === 'string' ? utf8Bytes(value) : value;
  if (bytes instanceof Uint8Array) return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
  return radix(value, 16, 'only integers, byte buffers, and strings can be formatted as hex');
}
