/**
 * Times as Go's time.Parse reads them by the layouts of meta/v1 Time and MicroTime: a fraction may follow the seconds of
 * the one and must have six digits in the other, hours and nothing else may have a single digit.
 */
import { goQuote } from '../meta/go-text.ts';

interface GoTime {
  /** Seconds since 1970. */
  readonly seconds: number;
  /** Digits behind the seconds, as written. */
  readonly fraction: string;
}

const LAYOUTS = { time: '2006-01-02T15:04:05Z07:00', micro: '2006-01-02T15:04:05.000000Z07:00' } as const;

const SHAPE = /^(\d{4})-(\d\d)-(\d\d)T(\d\d?):(\d\d):(\d\d)([.,]\d+)?(?:Z|([+-])(\d\d):(\d\d))$/;
const MICROS = 6;

/** The time, or why there is none. */
export function parseGoTime(text: string, kind: keyof typeof LAYOUTS): GoTime | string {
  const [shape, year = '', month = '', day = '', ...clock] = SHAPE.exec(text) ?? [];
  const [hour = '', minute = '', second = '', point = '', sign = '', offsetHour = '0', offsetMinute = '0'] = clock;
  const fraction = point.slice(1);
  if (shape === undefined || (kind === 'micro' && fraction.length !== MICROS)) {
    return `parsing time ${goQuote(text)} as ${goQuote(LAYOUTS[kind])}: cannot parse it`;
  }
  const start = new Date(0);
  start.setUTCFullYear(Number(year), Number(month) - 1, Number(day));
  // A month or day that is none moves the date on.
  const isDate = start.getUTCMonth() === Number(month) - 1 && start.getUTCDate() === Number(day);
  const bounds = [
    [hour, 23],
    [minute, 59],
    [second, 59],
    [offsetHour, 24],
    [offsetMinute, 60],
  ] as const;
  if (!isDate || bounds.some(([part, most]) => Number(part) > most)) {
    return `parsing time ${goQuote(text)}: a part is out of range`;
  }
  start.setUTCHours(Number(hour), Number(minute), Number(second));
  const offset = (Number(offsetHour) * 60 + Number(offsetMinute)) * (sign === '-' ? -60 : 60);
  return { seconds: start.getTime() / 1000 - offset, fraction };
}

/** Seconds since 1970 as `2006-01-02T15:04:05`, in UTC. */
export function secondsText(seconds: number): string {
  const date = new Date(seconds * 1000);
  const year = date.getUTCFullYear();
  const written = `${year < 0 ? '-' : ''}${String(Math.abs(year)).padStart(4, '0')}`;
  return written + date.toISOString().slice(-20, -5);
}
