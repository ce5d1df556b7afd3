/** Texts of timestamps and durations, and the parts of a point in time in a time zone. */
import { readGoDuration } from '@coracle/apimachinery/meta/go-duration';
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

const RFC3339 = /^(\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d)(?:\.(\d{1,9})\d*)?([Zz]|[+-]\d\d:\d\d)$/;

/** RFC 3339. Undefined when the text is none; out of range is an error of CelTimestamp. */
export function parseTimestamp(text: string): CelTimestamp | undefined {
  const match = RFC3339.exec(text);
  if (match === null) return undefined;
  const wall = match[1]!.toUpperCase();
  const date = new Date(`${wall}Z`);
  // A day that does not exist would become one of the next month.
  if (Number.isNaN(date.getTime()) || !date.toISOString().startsWith(wall)) return undefined;
  const offset = /^[zZ]$/.test(match[3]!) ? 0 : zoneMinutes(match[3]!);
  if (offset === undefined) return undefined;
  const nanos = BigInt(date.getTime()) * 1_000_000n + BigInt((match[2] ?? '').padEnd(9, '0'));
  return new CelTimestamp(nanos - BigInt(offset) * 60n * SECOND);
}

/** `YYYY-MM-DD` or RFC 3339: schema format `date`. */
export const parseDate = (text: string): CelTimestamp | undefined => parseTimestamp(`${text}T00:00:00Z`);

export function formatTimestamp({ nanos }: CelTimestamp): string {
  const { date, rest } = split(nanos);
  return `${date.toISOString().slice(0, 19)}${fraction(rest)}Z`;
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
