/** The rest of the standard library: sizes, simple tests on text, parts of times. */
import { CONTAINS, PREFIX, REGEX, REGEX_AT_RUN } from '../cost-models.ts';
import { type Overload, overload } from '../declarations.ts';
import { noOverload } from '../errors.ts';
import { inZone } from '../time.ts';
import { type CelDuration, type CelTimestamp, checkedInt, sizeOf } from '../values.ts';
import { CONVERSIONS } from './conversions.ts';
import { OPERATORS } from './operators.ts';
import { compileRegex } from './regex-cache.ts';

const SIZED = ['string', 'bytes', 'list(A)', 'map(A, B)'];

function size(value: unknown): number {
  const found = sizeOf(value);
  if (found === undefined) throw noOverload();
  return found;
}

const matches = (text: string, pattern: string): boolean => compileRegex(pattern).test(text);

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

function timeParts(): Overload[] {
  return Object.entries(TIME_PARTS).flatMap(([name, part]) => {
    const read = (at: CelTimestamp, zone: string): number => {
      const { date, millis } = inZone(at, zone);
      return part(date, millis);
    };
    return [
      overload(name, 'timestamp.(): int', (at: CelTimestamp) => read(at, 'UTC')),
      overload(name, 'timestamp.(string): int', read),
    ];
  });
}

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
  ...timeParts(),
  overload('getHours', 'duration.(): int', wholeUnits(3_600_000_000_000n)),
  overload('getMinutes', 'duration.(): int', wholeUnits(60_000_000_000n)),
  overload('getSeconds', 'duration.(): int', wholeUnits(1_000_000_000n)),
  // All of them, as of the other units and as cel-go has it; CEL's own data wants the part below a second.
  overload('getMilliseconds', 'duration.(): int', wholeUnits(1_000_000n)),
];
