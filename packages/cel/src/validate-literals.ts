/** Literal arguments that can never work are refused when the expression is written, as Kubernetes does since 1.29. */
import { compileTest } from './libraries/regex-cache.ts';
import { SourceError } from './report.ts';
import { type Call, children, type Expr } from './syntax.ts';
import { parseDuration, parseTimestamp } from './time.ts';
import { isInt } from './values.ts';

/** The years 1 to 9999, in seconds since 1970. */
const FIRST_SECOND = -62_135_596_800;
const LAST_SECOND = 253_402_300_799;

/** Throws SourceError for a literal pattern, duration or timestamp that is not valid. */
export function validateLiterals(expr: Expr): void {
  if (expr.op === 'call') validateCall(expr);
  for (const child of children(expr)) validateLiterals(child);
}

/** What reads the literal of a function. */
const READERS: Readonly<Record<string, (text: string) => unknown>> = {
  matches: compileTest,
  duration: parseDuration,
  timestamp: parseTimestamp,
};

function validateCall({ name, target, args: [arg] }: Call): void {
  // Upstream looks at the first in brackets: of `matches(text, pattern)` that is the text.
  if (arg?.op !== 'literal' || !Object.hasOwn(READERS, name) || (target !== undefined && name !== 'matches')) return;
  const { value } = arg;
  const seconds = name === 'timestamp' && isInt(value);
  const wrong =
    typeof value === 'string'
      ? !isReadable(READERS[name]!, value)
      : seconds
        ? value < FIRST_SECOND || value > LAST_SECOND
        : value === null && name !== 'matches';
  if (wrong) throw new SourceError(arg.at, `invalid ${name} argument`);
}

function isReadable(read: (text: string) => unknown, text: string): boolean {
  try {
    return read(text) !== undefined;
  } catch {
    return false;
  }
}
