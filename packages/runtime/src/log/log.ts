/** Structured logging: a constant lower-case message and fields; never secrets, never whole objects above debug. */
export type LogLevel = 'debug' | 'info' | 'warn' | 'error';
export type LogFields = Readonly<Record<string, string | number | boolean | undefined>>;

export interface Logger {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
  /** A logger whose records all carry `fields` as well. */
  with(fields: LogFields): Logger;
}

/** One record, ready to be written. */
export interface LogRecord {
  readonly level: LogLevel;
  readonly message: string;
  readonly fields: LogFields;
}

const RANK: Record<LogLevel, number> = { debug: 0, info: 1, warn: 2, error: 3 };

/** A logger that hands records at or above `level` to `write`. */
export function createLogger(
  write: (record: LogRecord) => void,
  level: LogLevel = 'info',
  base: LogFields = {},
): Logger {
  const emit = (at: LogLevel) => (message: string, fields?: LogFields) => {
    if (RANK[at] >= RANK[level]) write({ level: at, message, fields: fields ? { ...base, ...fields } : base });
  };
  return {
    debug: emit('debug'),
    info: emit('info'),
    warn: emit('warn'),
    error: emit('error'),
    with: (fields) => createLogger(write, level, { ...base, ...fields }),
  };
}

/** Renders a record as one JSON line: escaping keeps control characters of user text from forging records. */
export function formatRecord(record: LogRecord, now: number): string {
  return `${lineJson({ time: new Date(now).toISOString(), level: record.level, msg: record.message, ...record.fields })}\n`;
}

/** Delete, C1 controls (U+009B begins a terminal command), line separators, and what turns the reading direction round. */
const OBEYED = /[\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g;

/** JSON for a line that people read in a terminal: escapes what JSON.stringify leaves and a terminal would obey. */
export function lineJson(value: unknown): string {
  return JSON.stringify(value).replace(OBEYED, (it) => `\\u${it.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** Discards everything. */
export const silentLogger: Logger = createLogger(() => {});
