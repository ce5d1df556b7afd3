/** Texts of timestamps and durations, and the parts of a point in time in a time zone. */
import { readGoDuration } from '../meta/go-duration.ts';
import { CelEvaluationError } from './errors.ts';
import { CelDuration, CelTimestamp } from './values.ts';

const SECOND = 1_000_000_000n;
/** Go's time.ParseDuration. Undefined when the text is none; overflow is an error of CelDuration. */
export function parseDuration(text: string): CelDuration | undefined {
  const nanos = readGoDuration(text);
  return nanos === undefined ? undefined : new CelDuration(nanos);
}

/** As CEL prints it: seconds with the fraction that is needed (`5400s`, `0.25s`). */
export function formatDuration({ nanos }: CelDuration): string {
  const sign = nanos < 0n ? '-' : '';
  const amount = nanos < 0n ? -nanos : nanos;
  return `${sign}${amount / SECOND}${fraction(amount % SECOND)}s`;
}

function fraction(nanos: bigint): string {
  return nanos === 0n ? '' : `.${String(nanos).padStart(9, '0').replace(/0+$/, '')}`;
}

const RFC3339 = /^(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9})\d*)?([Zz]|[+-]\d\d:\d\d)$/;

/** RFC 3339. Undefined when the text is none; out of range is an error of CelTimestamp. */
export function parseTimestamp(text: string): CelTimestamp | undefined {
  const match = RFC3339.exec(text);
  if (match === null) return undefined;
  const [year, month, day, hour, minute, second] = match.slice(1, 7).map(Number) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  const millis = civil(year, month, day, hour, minute, second);
  if (millis === undefined) return undefined;
  const zone = match[8]!;
  const offset = /^[zZ]$/.test(zone) ? 0 : zoneMinutes(zone);
  if (offset === undefined) return undefined;
  const nanos = BigInt(millis) * 1_000_000n + BigInt((match[7] ?? '').padEnd(9, '0'));
  return new CelTimestamp(nanos - BigInt(offset) * 60n * SECOND);
}

/** Milliseconds since 1970 of a date that exists. */
function civil(
  year: number,
  month: number,
  day: number,
  hour: number,
  minute: number,
  second: number,
): number | undefined {
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  date.setUTCHours(hour, minute, second);
  const exists =
    date.getUTCMonth() === month - 1 && date.getUTCDate() === day && hour < 24 && minute < 60 && second < 60;
  return exists ? date.getTime() : undefined;
}

/** `YYYY-MM-DD` or RFC 3339: schema format `date`. */
export const parseDate = (text: string): CelTimestamp | undefined => parseTimestamp(`${text}T00:00:00Z`);

export function formatTimestamp({ nanos }: CelTimestamp): string {
  const { date, rest } = split(nanos);
  const year = String(date.getUTCFullYear()).padStart(4, '0');
  const two = (value: number): string => String(value).padStart(2, '0');
  const day = `${year}-${two(date.getUTCMonth() + 1)}-${two(date.getUTCDate())}`;
  return `${day}T${two(date.getUTCHours())}:${two(date.getUTCMinutes())}:${two(date.getUTCSeconds())}${fraction(rest)}Z`;
}

function split(nanos: bigint): { date: Date; rest: bigint } {
  const rest = ((nanos % SECOND) + SECOND) % SECOND;
  return { date: new Date(Number((nanos - rest) / 1_000_000n)), rest };
}

/** The wall clock in a zone, read through the UTC accessors of the result; `millis` are the milliseconds of the second. */
export function inZone(timestamp: CelTimestamp, zone: string): { date: Date; millis: number } {
  const { date, rest } = split(timestamp.nanos);
  const millis = Number(rest / 1_000_000n);
  if (zone === '' || zone === 'UTC' || zone === 'Z') return { date, millis };
  const minutes = zoneMinutes(zone) ?? namedZoneMinutes(date, zone);
  return { date: new Date(date.getTime() + minutes * 60_000), millis };
}

function zoneMinutes(zone: string): number | undefined {
  const match = /^([+-]?)(\d\d):(\d\d)$/.exec(zone);
  if (match === null) return undefined;
  const minutes = Number(match[2]) * 60 + Number(match[3]);
  return match[1] === '-' ? -minutes : minutes;
}

/** Formatters of zones, which are dear to make. At most 64. */
const zones = new Map<string, Intl.DateTimeFormat>();

function namedZoneMinutes(date: Date, zone: string): number {
  let format = zones.get(zone);
  if (format === undefined) {
    try {
      format = new Intl.DateTimeFormat('en-US', { timeZone: zone, timeZoneName: 'longOffset' });
    } catch {
      throw new CelEvaluationError(`unknown time zone ${zone}`);
    }
    if (zones.size >= 64) zones.clear();
    zones.set(zone, format);
  }
  const name = format.formatToParts(date).find((part) => part.type === 'timeZoneName')?.value ?? 'GMT';
  return zoneMinutes(name.slice(3)) ?? 0;
}
