/** The five fields of a CronJob's schedule, as robfig/cron reads them (`ParseStandard`). */

interface Field {
  readonly low: number;
  readonly high: number;
  readonly names?: readonly string[];
}

const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];
const DAYS = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'];
const FIELDS: readonly Field[] = [
  { low: 0, high: 59 },
  { low: 0, high: 23 },
  { low: 1, high: 31 },
  { low: 1, high: 12, names: MONTHS },
  { low: 0, high: 6, names: DAYS },
];
const DESCRIPTORS = ['@yearly', '@annually', '@monthly', '@weekly', '@daily', '@midnight', '@hourly'];
const EVERY = '@every ';
const DURATION = /^([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)$/;

/** What is wrong with a schedule, in the parser's words; undefined when it can be read. */
export function scheduleError(schedule: string): string | undefined {
  if (schedule === '') return 'empty spec string';
  if (schedule.startsWith('@')) return descriptorError(schedule);
  const fields = schedule.trim().split(/\s+/);
  if (fields.length !== FIELDS.length) {
    return `expected exactly ${FIELDS.length} fields, found ${fields.length}: [${fields.join(' ')}]`;
  }
  for (const [i, text] of fields.entries()) {
    for (const range of text.split(',')) {
      const wrong = range === '' ? undefined : rangeError(range, FIELDS[i]!);
      if (wrong !== undefined) return wrong;
    }
  }
  return undefined;
}

function descriptorError(text: string): string | undefined {
  if (DESCRIPTORS.includes(text)) return undefined;
  if (!text.startsWith(EVERY)) return `unrecognized descriptor: ${text}`;
  const parts = text.slice(EVERY.length).match(/[0-9.]+[a-zµμ]+/g) ?? [];
  const whole = parts.join('') === text.slice(EVERY.length) && parts.length > 0;
  return whole && parts.every((part) => DURATION.test(part)) ? undefined : `failed to parse duration ${text}`;
}

/** `number | number-number | *`, each perhaps with `/step`. */
function rangeError(text: string, field: Field): string | undefined {
  const [range = '', step, ...more] = text.split('/');
  const [first = '', last, ...rest] = range.split('-');
  if (rest.length > 0) return `too many hyphens: ${text}`;
  let from = field.low;
  let to = field.high;
  if (first !== '*' && first !== '?') {
    const start = numberOf(first, field);
    const end = last === undefined ? start : numberOf(last, field);
    if (typeof start === 'string') return start;
    if (typeof end === 'string') return end;
    from = start;
    to = last === undefined && step !== undefined ? field.high : end;
  }
  if (more.length > 0) return `too many slashes: ${text}`;
  const by = step === undefined ? 1 : numberOf(step, {});
  if (typeof by === 'string') return by;
  if (from < field.low) return `beginning of range (${from}) below minimum (${field.low}): ${text}`;
  if (to > field.high) return `end of range (${to}) above maximum (${field.high}): ${text}`;
  if (from > to) return `beginning of range (${from}) beyond end of range (${to}): ${text}`;
  return by === 0 ? `step of range should be a positive number: ${text}` : undefined;
}

function numberOf(text: string, { names }: { readonly names?: readonly string[] }): number | string {
  const named = names?.indexOf(text.toLowerCase()) ?? -1;
  if (named >= 0) return names === MONTHS ? named + 1 : named;
  if (/^\+?[0-9]+$/.test(text)) return Number(text);
  if (/^-[0-9]+$/.test(text)) return `negative number (${Number(text)}) not allowed: ${text}`;
  return `failed to parse int from ${text}: strconv.Atoi: parsing ${JSON.stringify(text)}: invalid syntax`;
}
