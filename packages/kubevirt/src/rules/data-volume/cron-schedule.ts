/** Schedules in the format of cron, five fields in UTC: `minute hour day-of-month month day-of-week`. */

export interface CronSchedule {
  /** The first time after `after`, both in milliseconds since 1970; undefined for a date that never comes. */
  next(after: number): number | undefined;
}

interface Field {
  readonly min: number;
  readonly max: number;
  readonly names?: readonly string[];
}

const FIELDS: readonly Field[] = [
  { min: 0, max: 59 },
  { min: 0, max: 23 },
  { min: 1, max: 31 },
  { min: 1, max: 12, names: ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'] },
  { min: 0, max: 7, names: ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'] },
];
const WORDS: Readonly<Record<string, string>> = {
  '@yearly': '0 0 1 1 *',
  '@annually': '0 0 1 1 *',
  '@monthly': '0 0 1 * *',
  '@weekly': '0 0 * * 0',
  '@daily': '0 0 * * *',
  '@midnight': '0 0 * * *',
  '@hourly': '0 * * * *',
};
const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
/** 29 February comes after eight years at the latest. */
const MAX_DAYS = 8 * 366;

/** Reads a schedule; undefined for text that is none. */
export function parseCron(text: string): CronSchedule | undefined {
  const parts = (WORDS[text.trim().toLowerCase()] ?? text).trim().split(/\s+/);
  if (parts.length !== FIELDS.length) return undefined;
  const sets = parts.map((part, at) => parseField(part.toLowerCase(), FIELDS[at]!));
  const [minutes, hours, days, months, weekdays] = sets;
  if (!minutes || !hours || !days || !months || !weekdays) return undefined;
  if (weekdays.has(7)) weekdays.add(0);
  const [anyDay, anyWeekday] = [parts[2]!.startsWith('*'), parts[4]!.startsWith('*')];
  const isDay = (date: Date): boolean => {
    if (!months.has(date.getUTCMonth() + 1)) return false;
    const [byDay, byWeekday] = [days.has(date.getUTCDate()), weekdays.has(date.getUTCDay())];
    // Where both are restricted, either will do.
    return anyDay || anyWeekday ? byDay && byWeekday : byDay || byWeekday;
  };
  return {
    next(after) {
      const from = Math.floor(after / MINUTE_MS) * MINUTE_MS + MINUTE_MS;
      const midnight = Math.floor(from / DAY_MS) * DAY_MS;
      for (let day = 0; day < MAX_DAYS; day++) {
        const start = midnight + day * DAY_MS;
        if (!isDay(new Date(start))) continue;
        for (const hour of hours)
          for (const minute of minutes) {
            const time = start + (hour * 60 + minute) * MINUTE_MS;
            if (time >= from) return time;
          }
      }
      return undefined;
    },
  };
}

/** Values in ascending order; undefined for what is no field. */
function parseField(text: string, { min, max, names = [] }: Field): Set<number> | undefined {
  const values = new Set<number>();
  const valueIn = (word: string): number => {
    const named = names.indexOf(word);
    return named >= 0 ? named + min : /^\d{1,2}$/.test(word) ? Number(word) : Number.NaN;
  };
  for (const item of text.split(',')) {
    const [range = '', stepText = '1', ...more] = item.split('/');
    const step = Number(stepText);
    if (more.length > 0 || !/^\d{1,2}$/.test(stepText) || step < 1) return undefined;
    const [first = '', last, ...rest] = range.split('-');
    if (rest.length > 0) return undefined;
    const isAll = range === '*' || range === '?';
    const from = isAll ? min : valueIn(first);
    const to = isAll ? max : last !== undefined ? valueIn(last) : item.includes('/') ? max : from;
    if (!(from >= min && to <= max && from <= to)) return undefined;
    for (let value = from; value <= to; value += step) values.add(value);
  }
  return new Set([...values].sort((a, b) => a - b));
}
