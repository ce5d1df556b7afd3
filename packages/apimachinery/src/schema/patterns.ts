/**
 * Regular expressions of schemas, in Go's dialect and linear time (RE2), whatever the pattern: a CustomResourceDefinition
 * comes from a user. RE2 in JavaScript is slow per match, so recent results are remembered.
 */
import { RE2JS } from 're2js';

export interface Pattern {
  /** True when some part of the text matches. */
  test(text: string): boolean;
}

/** Compiled patterns kept; the least recently used goes first. */
const MAX_PATTERNS = 1024;
/** Instructions of all of them: a few characters (`((a{1,30}){1,30})`) may be some thousand, and as many kilobytes. */
const MAX_INSTRUCTIONS = 200_000;
/** Results kept for each pattern, of texts up to this length. */
const MAX_RESULTS = 256;
const MAX_RESULT_TEXT = 128;

interface Compiled {
  readonly pattern: Pattern;
  readonly instructions: number;
}

const compiled = new Map<string, Compiled>();
let instructions = 0;

/**
 * Compiles a pattern, or finds it compiled.
 * @throws Error when the pattern is not valid RE2; the message says why
 */
export function compilePattern(source: string): Pattern {
  const known = compiled.get(source);
  if (known !== undefined) {
    // Map keeps insertion order: moving it to the end makes the first key the oldest.
    compiled.delete(source);
    compiled.set(source, known);
    return known.pattern;
  }
  const expression = RE2JS.compile(source);
  const made: Compiled = { pattern: remembering(expression), instructions: expression.programSize() };
  compiled.set(source, made);
  instructions += made.instructions;
  for (const [oldest, { instructions: freed }] of compiled) {
    if (compiled.size <= MAX_PATTERNS && instructions <= MAX_INSTRUCTIONS) break;
    compiled.delete(oldest);
    instructions -= freed;
  }
  return made.pattern;
}

function remembering(expression: RE2JS): Pattern {
  const results = new Map<string, boolean>();
  return {
    test(text) {
      if (text.length > MAX_RESULT_TEXT) return expression.test(text);
      const known = results.get(text);
      if (known !== undefined) return known;
      if (results.size >= MAX_RESULTS) results.clear();
      const result = expression.test(text);
      results.set(text, result);
      return result;
    },
  };
}
