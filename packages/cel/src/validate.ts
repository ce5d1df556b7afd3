/** What is asked of a whole expression when it is written, once it is checked. */
import { CelEvaluationError, isReadable } from './errors.ts';
import { CLAUSES, replaceClauses, type Verb } from './libraries/format-clauses.ts';
import { compileTest } from './libraries/regex.ts';
import { SourceError } from './report.ts';
import { type Call, children, type Expr } from './syntax.ts';
import { parseDuration, parseTimestamp } from './time.ts';
import { type CelType, DYN, formatType, fullTypeName, sameType } from './types.ts';
import { isInt } from './values.ts';

/** Throws SourceError for the first literal that can never work; where `homogeneous`, for a literal of mixed types, too. */
export function validateExpression(root: Expr, homogeneous: boolean): void {
  for (const expr of partsOf(root)) if (expr.op === 'call') validateLiteral(expr);
  // What stands inside a call of `format` may be mixed.
  if (homogeneous) for (const expr of partsOf(root, isFormat)) validateMembers(expr);
  for (const expr of partsOf(root)) if (isFormat(expr)) validateFormat(expr);
}

const isFormat = (expr: Expr): expr is Call => expr.op === 'call' && expr.name === 'format';

/** The parts of an expression in order of the source, each before those inside of it; without those that are left out. */
function* partsOf(expr: Expr, isLeftOut = (_: Expr): boolean => false): Generator<Expr> {
  if (isLeftOut(expr)) return;
  yield expr;
  for (const child of children(expr)) yield* partsOf(child, isLeftOut);
}

/** The years 1 to 9999, in seconds since 1970. */
const FIRST_SECOND = -62_135_596_800;
const LAST_SECOND = 253_402_300_799;

/** What reads the literal of a function. */
const READERS: Readonly<Record<string, (text: string) => unknown>> = {
  matches: compileTest,
  duration: parseDuration,
  timestamp: parseTimestamp,
};

/** Patterns, durations and timestamps, as Kubernetes has them read since 1.29. */
function validateLiteral({ name, target, args: [arg] }: Call): void {
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

interface Member {
  readonly at: number;
  readonly type: CelType;
}

/**
 * Literals of lists and maps have members of one type, and `dyn` is a type of its own there (cel-go
 * homogeneousAggregateLiteralValidator): `[d, 'a']` is refused although either could be a text.
 */
function validateMembers(expr: Expr): void {
  if (expr.op === 'list') {
    const [first, ...rest] = expr.items.map(({ value, optional }) => memberOf(value, optional));
    for (const member of rest) assertSame(first!, member);
  } else if (expr.op === 'map') {
    const [first, ...rest] = expr.entries.map(({ key, value, optional }) => ({
      key: memberOf(key, false),
      value: memberOf(value, optional),
    }));
    for (const { key, value } of rest) {
      assertSame(first!.key, key);
      assertSame(first!.value, value);
    }
  }
}

function memberOf({ at, type }: Expr, optional: boolean): Member {
  if (!optional) return { at, type: type! };
  return { at, type: type?.kind === 'optional' ? type.params[0]! : DYN };
}

function assertSame(wanted: Member, { at, type }: Member): void {
  if (sameType(wanted.type, type)) return;
  throw new SourceError(at, `expected type '${formatType(wanted.type)}' but found '${formatType(type)}'`);
}

/**
 * `'...'.format([...])` of literals (cel-go ext/formatting, stringFormatValidator): every clause is known and fits the type
 * of its argument, and every argument has a clause.
 */
function validateFormat({ target, args: [list], at }: Call): void {
  if (target?.op !== 'literal' || typeof target.value !== 'string' || list?.op !== 'list') return;
  const { items } = list;
  let used = 0;
  try {
    replaceClauses(target.value, items.length, (verb, index) => {
      checkItem(verb, items[index]!.value);
      used++;
      return '';
    });
  } catch (error) {
    if (error instanceof CelEvaluationError) throw new SourceError(at, error.message);
    throw error;
  }
  if (used < items.length) {
    throw new SourceError(at, `too many arguments supplied to string.format (expected ${used}, got ${items.length})`);
  }
}

/** @throws SourceError for an argument that the clause does not take */
function checkItem(verb: Verb, item: Expr): void {
  const { kinds, refusal } = CLAUSES[verb];
  const type = item.type!;
  if (type.kind !== 'dyn' && !kinds.includes(type.kind)) {
    const given = fullTypeName({ ...type, params: [] });
    throw new SourceError(item.at, `error during formatting: ${refusal}, was given ${given}`);
  }
  if (verb === 's' && (item.op === 'list' || item.op === 'map')) {
    for (const part of children(item)) checkItem('s', part);
  }
}
