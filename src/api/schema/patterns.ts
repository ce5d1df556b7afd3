/**
 * Regular expressions of schemas, in Go's dialect and linear time (RE2), whatever the pattern: a CustomResourceDefinition
 * comes from a user. RE2 in JavaScript is slow per match, so recent verdicts are remembered.
 */
import { RE2JS } from 're2js';

export interface Pattern {
  /** True when some part of the text matches. */
  test(text: string): boolean;
}

/** Compiled patterns kept; the least recently used goes first. */
const MAX_PATTERNS = 1024;
/** Verdicts kept for each pattern, of texts up to this length. */
const MAX_VERDICTS = 256;
const MAX_VERDICT_TEXT = 128;

const compiled = new Map<string, Pattern>();

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
    return known;
  }
  const pattern = remembering(RE2JS.compile(source));
  compiled.set(source, pattern);
  if (compiled.size > MAX_PATTERNS) compiled.delete(compiled.keys().next().value!);
  return pattern;
}

function remembering(expression: RE2JS): Pattern {
  const verdicts = new Map<string, boolean>();
  return {
    test(text) {
      if (text.length > MAX_VERDICT_TEXT) return expression.test(text);
      const known = verdicts.get(text);
      if (known !== undefined) return known;
      if (verdicts.size >= MAX_VERDICTS) verdicts.clear();
      const verdict = expression.test(text);
      verdicts.set(text, verdict);
      return verdict;
    },
  };
}
