/**
 * `find`, `findAll`, and regular expressions, compiled once: by RE2, since patterns and texts both come from users, so nothing
 * here may backtrack. Simple patterns mean the same to the engine, which has nowhere to backtrack to in them. It is many times
 * as fast, and RE2 decodes tables of Unicode for the first pattern that it compiles.
 */
import { RE2JS } from 're2js';
import { FIND } from '../cost-models.ts';
import { type Overload, overload } from '../declarations.ts';
import { CelEvaluationError } from '../errors.ts';

/** Compiled expressions kept, of each of the two; the oldest goes first. */
const MAX_REGEXES = 512;
const compiled = new Map<string, RE2JS>();
const simple = new Map<string, RegExp>();

/** Words, sets of single characters and at most one choice of words: no repetition. */
const SIMPLE = /^\^?(?:[\w \-/,:=]|\[(?:\w|\\[nrt])+\])*(?:\((?:[\w-]+\|)*[\w-]+\))?\$?$/;

/** @throws CelEvaluationError when the pattern is not RE2 */
export function compileRegex(pattern: string): RE2JS {
  const known = compiled.get(pattern);
  if (known !== undefined) return known;
  try {
    return keep(compiled, pattern, RE2JS.compile(pattern));
  } catch (error) {
    throw new CelEvaluationError(error instanceof Error ? error.message : String(error));
  }
}

/**
 * For those who only ask whether a text matches.
 * @throws CelEvaluationError when the pattern is not RE2
 */
export function compileTest(pattern: string): Pick<RE2JS, 'test'> {
  const known = simple.get(pattern);
  if (known !== undefined) return known;
  return SIMPLE.test(pattern) ? keep(simple, pattern, new RegExp(pattern)) : compileRegex(pattern);
}

function keep<T>(cache: Map<string, T>, pattern: string, regex: T): T {
  cache.set(pattern, regex);
  if (cache.size > MAX_REGEXES) cache.delete(cache.keys().next().value!);
  return regex;
}

function find(text: string, pattern: string): string {
  const matcher = compileRegex(pattern).matcher(text);
  return matcher.find() ? (matcher.group() ?? '') : '';
}

function findAll(text: string, pattern: string, limit: number | bigint = -1): string[] {
  const matcher = compileRegex(pattern).matcher(text);
  const found: string[] = [];
  while ((limit < 0 || found.length < limit) && matcher.find()) found.push(matcher.group() ?? '');
  return found;
}

export const REGEX_LIBRARY: readonly Overload[] = [
  overload('find', 'string.(string): string', find, FIND),
  overload('findAll', 'string.(string): list(string)', findAll, FIND),
  overload('findAll', 'string.(string, int): list(string)', findAll, FIND),
];
