/**
 * Times as Go's time.Parse reads them by the layouts of meta/v1 Time and MicroTime: a fraction may follow the seconds of
 * the one and must have six digits in the other, hours and nothing else may have a single digit.
 */
export interface GoTime {
  /** Seconds since 1970. */
  readonly seconds: number;
  /** Digits behind the seconds, as written. */
  readonly fraction: string;
}

const LAYOUTS = { time: '2006-01-02T15:04:05Z07:00', micro: '2006-01-02T15:04:05.000000Z07:00' } as const;

class Unparsed extends Error {}

/** The time, or the text of Go's error. */
export function parseGoTime(text: string, kind: keyof typeof LAYOUTS): GoTime | string {
  try {
    return read(text, kind);
  } catch (error) {
    if (error instanceof Unparsed) return error.message;
    throw error;
  }
}

function read(text: string, kind: keyof typeof LAYOUTS): GoTime {
  let rest = text;
  const unparsed = (element: string): Unparsed =>
    new Unparsed(
      `parsing time ${quote(text)} as ${quote(LAYOUTS[kind])}: cannot parse ${quote(rest)} as ${quote(element)}`,
    );
  const outOfRange = (what: string): Unparsed => new Unparsed(`parsing time ${quote(text)}: ${what} out of range`);
  const take = (pattern: RegExp, element: string): string => {
    const found = pattern.exec(rest)?.[0];
    if (found === undefined) throw unparsed(element);
    rest = rest.slice(found.length);
    return found;
  };
  const number = (pattern: RegExp, element: string): number => Number(take(pattern, element));
  const two = /^[0-9]{2}/;

  const year = number(/^[0-9]{4}/, '2006');
  take(/^-/, '-');
  const month = number(two, '01');
  if (month < 1 || month > 12) throw outOfRange('month');
  take(/^-/, '-');
  const day = number(two, '02');
  take(/^T/, 'T');
  const hour = number(/^[0-9]{1,2}/, '15');
  if (hour > 23) throw outOfRange('hour');
  take(/^:/, ':');
  const minute = number(two, '04');
  if (minute > 59) throw outOfRange('minute');
  take(/^:/, ':');
  const second = number(two, '05');
  if (second > 59) throw outOfRange('second');
  const fraction = kind === 'micro' ? take(/^[.,][0-9]{6}/, '.000000') : (/^[.,][0-9]+/.exec(rest)?.[0] ?? '');
  if (kind === 'time') rest = rest.slice(fraction.length);
  const zone = take(/^(?:Z|[+-][0-9]{2}:[0-9]{2})/, 'Z07:00');
  const [offsetHours, offsetMinutes] = zone === 'Z' ? [0, 0] : [Number(zone.slice(1, 3)), Number(zone.slice(4))];
  if (offsetHours > 24) throw outOfRange('time zone offset hour');
  if (offsetMinutes > 60) throw outOfRange('time zone offset minute');
  if (rest !== '') throw new Unparsed(`parsing time ${quote(text)}: extra text: ${quote(rest)}`);
  if (day < 1 || day > daysIn(month, year)) throw outOfRange('day');

  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  date.setUTCHours(hour, minute, second);
  const offset = (offsetHours * 60 + offsetMinutes) * (zone[0] === '-' ? -60 : 60);
  return { seconds: date.getTime() / 1000 - offset, fraction: fraction.slice(1) };
}

function daysIn(month: number, year: number): number {
  if (month === 2) return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28;
  return [4, 6, 9, 11].includes(month) ? 30 : 31;
}

/** As package time quotes: quotes, backslashes and what is no printable ASCII are escaped, the latter byte by byte. */
function quote(text: string): string {
  let out = '';
  for (const char of text) {
    if (char === '"' || char === '\\') out += `\\${char}`;
    else if (char >= ' ' && char <= '~') out += char;
    else if (char === '\u007f') out += char;
    else for (const byte of new TextEncoder().encode(char)) out += `\\x${byte.toString(16).padStart(2, '0')}`;
  }
  return `"${out}"`;
}

/** Seconds since 1970 as `2006-01-02T15:04:05`, in UTC. */
export function secondsText(seconds: number): string {
  const date = new Date(seconds * 1000);
  const year = date.getUTCFullYear();
  const written = `${year < 0 ? '-' : ''}${String(Math.abs(year)).padStart(4, '0')}`;
  return written + date.toISOString().slice(-20, -5);
}
