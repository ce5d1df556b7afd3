/** The rest of the standard library: sizes, simple tests on text, parts of times. */

import { goQuote } from '@coracle/apimachinery/meta/go-text';
import { BYTES_TO_STRING, CONTAINS, PREFIX, REGEX, REGEX_AT_RUN, STRING_TO_BYTES } from '../cost-models.ts';
import { type Overload, overload } from '../declarations.ts';
import { fail } from '../errors.ts';
import { formatDuration, formatTimestamp, inZone, parseDuration, parseTimestamp } from '../time.ts';
import { stringOf } from '../to-string.ts';
import {
  CelDouble,
  type CelDuration,
  CelTimestamp,
  CelTypeValue,
  CelUint,
  checkedInt,
  checkedUint,
  intFromBigInt,
  MAX_INT,
  MAX_UINT,
  MIN_INT,
  runtimeTypeName,
  sizeOf,
} from '../values.ts';
import { utf8Bytes, utf8Text } from './bytes.ts';
import { OPERATORS } from './operators.ts';
import { compileTest } from './regex.ts';

/** A text that is no value of the type; cel-go does not say why. */
const unreadable = (type: string): never => fail(`type conversion error from 'string' to '${type}'`);
const SECOND = 1_000_000_000n;

/** Longest number that is read: one of millions of digits would take long, and is out of range anyway. */
const MAX_DIGITS = 1024;
const digits = (text: string): bigint => (text.length > MAX_DIGITS ? MAX_UINT + 1n : BigInt(text.replace(/^\+/, '')));

function intFromText(text: string): number | bigint {
  if (!/^[+-]?[0-9]+$/.test(text)) unreadable('int');
  const value = digits(text);
  if (value < MIN_INT || value > MAX_INT) unreadable('int');
  return intFromBigInt(value);
}

function uintFromText(text: string): CelUint {
  if (!/^[0-9]+$/.test(text)) unreadable('uint');
  const value = digits(text);
  if (value > MAX_UINT) unreadable('uint');
  return new CelUint(value);
}

function intFromDouble({ value }: CelDouble): number | bigint {
  // The edges of int64 are not exact as doubles, so both are refused.
  if (!(value > -(2 ** 63) && value < 2 ** 63)) fail('integer overflow');
  return intFromBigInt(BigInt(Math.trunc(value)));
}

function uintFromDouble({ value }: CelDouble): CelUint {
  if (!(value >= 0 && value < 2 ** 64)) fail('unsigned integer overflow');
  return new CelUint(BigInt(Math.trunc(value)));
}

function doubleFromText(text: string): CelDouble {
  const special = /^([+-]?)(inf|infinity|nan)$/i.exec(text);
  if (special !== null) {
    if (special[2]!.toLowerCase() === 'nan') return new CelDouble(Number.NaN);
    return new CelDouble(special[1] === '-' ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY);
  }
  if (!/^[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$/.test(text)) unreadable('double');
  return new CelDouble(Number(text));
}

function boolFromText(text: string): boolean {
  if (['true', 'TRUE', 'True', 't', 'T', '1'].includes(text)) return true;
  if (['false', 'FALSE', 'False', 'f', 'F', '0'].includes(text)) return false;
  return unreadable('bool');
}

const timeFromText = (text: string): CelTimestamp =>
  parseTimestamp(text) ?? fail(`invalid RFC 3339 timestamp ${goQuote(text)}`);
const durationFromText = (text: string): CelDuration => parseDuration(text) ?? unreadable('google.protobuf.Duration');

const seconds = (at: CelTimestamp): number | bigint => {
  const rest = ((at.nanos % SECOND) + SECOND) % SECOND;
  return checkedInt((at.nanos - rest) / SECOND);
};

const same = (value: unknown): unknown => value;

const CONVERSIONS: readonly Overload[] = [
  overload('bool', '(bool): bool', same),
  overload('bool', '(string): bool', boolFromText),
  overload('bytes', '(bytes): bytes', same),
  overload('bytes', '(string): bytes', utf8Bytes, STRING_TO_BYTES),
  overload('double', '(double): double', same),
  overload('double', '(int): double', (value: number | bigint) => new CelDouble(Number(value))),
  overload('double', '(uint): double', (value: CelUint) => new CelDouble(Number(value.value))),
  overload('double', '(string): double', doubleFromText),
  overload('duration', '(duration): duration', same),
  overload('duration', '(string): duration', durationFromText),
  overload('dyn', '(A): dyn', same),
  overload('int', '(int): int', same),
  overload('int', '(uint): int', (value: CelUint) => checkedInt(value.value)),
  overload('int', '(double): int', intFromDouble),
  overload('int', '(string): int', intFromText),
  overload('int', '(timestamp): int', seconds),
  overload('int', '(duration): int', ({ nanos }: CelDuration) => checkedInt(nanos)),
  overload('string', '(string): string', same),
  overload('string', '(bool): string', String),
  overload('string', '(int): string', String),
  overload('string', '(uint): string', stringOf),
  overload('string', '(double): string', stringOf),
  overload('string', '(bytes): string', utf8Text, BYTES_TO_STRING),
  overload('string', '(timestamp): string', formatTimestamp),
  overload('string', '(duration): string', formatDuration),
  overload('timestamp', '(timestamp): timestamp', same),
  overload('timestamp', '(int): timestamp', (value: number | bigint) => new CelTimestamp(BigInt(value) * SECOND)),
  overload('timestamp', '(string): timestamp', timeFromText),
  overload('type', '(A): type(A)', (value: unknown) => new CelTypeValue(runtimeTypeName(value))),
  overload('uint', '(uint): uint', same),
  overload('uint', '(int): uint', (value: number | bigint) => checkedUint(BigInt(value))),
  overload('uint', '(double): uint', uintFromDouble),
  overload('uint', '(string): uint', uintFromText),
];

const SIZED = ['string', 'bytes', 'list(A)', 'map(A, B)'];

const size = (value: unknown): number => sizeOf(value) ?? fail('no such overload');

const matches = (text: string, pattern: string): boolean => compileTest(pattern).test(text);

const DAY = 86_400_000;
const startOfYear = (date: Date): number => {
  const start = new Date(0);
  start.setUTCFullYear(date.getUTCFullYear(), 0, 1);
  return start.getTime();
};

const TIME_PARTS: Readonly<Record<string, (date: Date, millis: number) => number>> = {
  getFullYear: (date) => date.getUTCFullYear(),
  getMonth: (date) => date.getUTCMonth(),
  getDate: (date) => date.getUTCDate(),
  getDayOfMonth: (date) => date.getUTCDate() - 1,
  getDayOfWeek: (date) => date.getUTCDay(),
  getDayOfYear: (date) => Math.floor((date.getTime() - startOfYear(date)) / DAY),
  getHours: (date) => date.getUTCHours(),
  getMinutes: (date) => date.getUTCMinutes(),
  getSeconds: (date) => date.getUTCSeconds(),
  getMilliseconds: (_, millis) => millis,
};

const TIMES = Object.entries(TIME_PARTS).flatMap(([name, part]) => {
  const read = (at: CelTimestamp, zone = 'UTC'): number => {
    const { date, millis } = inZone(at, zone);
    return part(date, millis);
  };
  return [overload(name, 'timestamp.(): int', read), overload(name, 'timestamp.(string): int', read)];
});

const wholeUnits = (unit: bigint) => (span: CelDuration) => checkedInt(span.nanos / unit);

export const STANDARD: readonly Overload[] = [
  ...OPERATORS,
  ...CONVERSIONS,
  ...SIZED.flatMap((type) => [overload('size', `(${type}): int`, size), overload('size', `${type}.(): int`, size)]),
  overload('contains', 'string.(string): bool', (text: string, part: string) => text.includes(part), CONTAINS),
  overload('startsWith', 'string.(string): bool', (text: string, part: string) => text.startsWith(part), PREFIX),
  overload('endsWith', 'string.(string): bool', (text: string, part: string) => text.endsWith(part), PREFIX),
  overload('matches', 'string.(string): bool', matches, REGEX),
  overload('matches', '(string, string): bool', matches, REGEX_AT_RUN),
  ...TIMES,
  overload('getHours', 'duration.(): int', wholeUnits(3_600_000_000_000n)),
  overload('getMinutes', 'duration.(): int', wholeUnits(60_000_000_000n)),
  overload('getSeconds', 'duration.(): int', wholeUnits(1_000_000_000n)),
  // All of them, as of the other units and as cel-go has it; CEL's own data wants the part below a second.
  overload('getMilliseconds', 'duration.(): int', wholeUnits(1_000_000n)),
];
