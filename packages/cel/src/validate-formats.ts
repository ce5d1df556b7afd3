/**
 * `'...'.format([...])` of literals, checked when the expression is written (cel-go ext/formatting, stringFormatValidator):
 * every clause is known and fits the type of its argument, and every argument has a clause.
 */
import { CelEvaluationError } from './errors.ts';
import { CLAUSES, replaceClauses, type Verb } from './libraries/format-clauses.ts';
import { SourceError } from './report.ts';
import { type Call, children, type Expr } from './syntax.ts';
import { fullTypeName } from './types.ts';

/** Expects a checked expression. Throws SourceError for a format that can never work. */
export function validateFormats(expr: Expr): void {
  if (expr.op === 'call') validateCall(expr);
  for (const child of children(expr)) validateFormats(child);
}

function validateCall({ name, target, args, at }: Call): void {
  const [list] = args;
  if (name !== 'format' || target?.op !== 'literal' || typeof target.value !== 'string' || list?.op !== 'list') return;
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
  if (verb === 's' && (item.op === 'list' || item.op === 'map'))
    for (const part of children(item)) checkItem('s', part);
}
