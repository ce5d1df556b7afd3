/** Literal arguments that can never work are refused when the expression is written, as Kubernetes does since 1.29. */
import { compileRegex } from './libraries/regex-cache.ts';
import type { Report } from './report.ts';
import { type Call, children, type Expr } from './syntax.ts';
import { parseDuration, parseTimestamp } from './time.ts';
import { isInt } from './values.ts';

/** The years 1 to 9999, in seconds since 1970. */
const FIRST_SECOND = -62_135_596_800;
const LAST_SECOND = 253_402_300_799;

/** Adds a fault for each literal pattern, duration or timestamp that is not valid. */
export function validateLiterals(expr: Expr, report: Report): void {
  if (expr.op === 'call') validateCall(expr, report);
  for (const child of children(expr)) validateLiterals(child, report);
}

function validateCall(call: Call, report: Report): void {
  // Upstream looks at the first in brackets: of `matches(text, pattern)` that is the text.
  const arg = call.args[0];
  if (call.name === 'timestamp' && call.target === undefined && arg?.op === 'literal' && isInt(arg.value)) {
    if (arg.value < FIRST_SECOND || arg.value > LAST_SECOND) report.add(arg.at, 'invalid timestamp argument');
    return;
  }
  if (arg?.op !== 'literal') return;
  if (arg.value === null && (call.name === 'timestamp' || call.name === 'duration') && call.target === undefined) {
    report.add(arg.at, `invalid ${call.name} argument`);
  }
  if (typeof arg.value !== 'string') return;
  if (call.name === 'matches') {
    const fault = attempt(() => compileRegex(arg.value as string));
    if (fault !== undefined) report.add(arg.at, `invalid matches argument`);
  } else if (call.name === 'duration' && call.target === undefined) {
    const known = attempt(() => parseDuration(arg.value as string) ?? fail());
    if (known !== undefined) report.add(arg.at, 'invalid duration argument');
  } else if (call.name === 'timestamp' && call.target === undefined) {
    const known = attempt(() => parseTimestamp(arg.value as string) ?? fail());
    if (known !== undefined) report.add(arg.at, 'invalid timestamp argument');
  }
}

const fail = (): never => {
  throw new Error('not valid');
};

function attempt(run: () => unknown): unknown {
  try {
    run();
    return undefined;
  } catch (error) {
    return error;
  }
}
