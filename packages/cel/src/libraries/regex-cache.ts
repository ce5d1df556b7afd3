/** RE2 expressions, compiled once. Patterns and texts both come from users, so nothing here may backtrack. */
import { RE2JS } from 're2js';
import { CelEvaluationError } from '../errors.ts';

/** Compiled expressions kept; the oldest goes first. */
const MAX_REGEXES = 512;
const compiled = new Map<string, RE2JS>();

/** @throws CelEvaluationError when the pattern is not RE2 */
export function compileRegex(pattern: string): RE2JS {
  const known = compiled.get(pattern);
  if (known !== undefined) return known;
  let regex: RE2JS;
  try {
    regex = RE2JS.compile(pattern);
  } catch (error) {
    throw new CelEvaluationError(error instanceof Error ? error.message : String(error));
  }
  compiled.set(pattern, regex);
  if (compiled.size > MAX_REGEXES) compiled.delete(compiled.keys().next().value!);
  return regex;
}
