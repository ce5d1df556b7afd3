/**
 * The word check: names, comments, messages and pages use the field's terms (docs/glossary.md). A word of `OLD_WORDS` that
 * comes back is reported with its place and the term that replaces it.
 */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Expressions for words that are not used, and the terms that are. */
const OLD_WORDS: readonly (readonly [expression: string, term: string])[] = [
  ['sift(?:s|ed|ing)?', 'filter'],
  ['wish(?:es|ed)?', 'request, preference'],
  ['mend(?:s|ed|ing)?', 'repair, correct, remedy'],
  ['ears?', 'listener, recorder'],
  ['abroad', 'on an external cluster'],
  ['janitors?', 'kube-controllers'],
  ['of another make', 'external'],
  ['strangers?', 'unauthenticated client, unmanaged Pod'],
  ['kept zeros', 'fields whose zero is written'],
  ['puts? up with', 'tolerates'],
  ['(?:un)?told', 'reported, notified, requested, known'],
  ['judg(?:e|es|ed|ing|ement|ements)', 'validate, decide, decision'],
  ['verdicts?', 'decision, outcome, result'],
];

const PLACES = [
  'packages/*/src/**/*.ts',
  'test/**/*.ts',
  'bench/**/*.ts',
  'tools/**/*.ts',
  'docs/**/*.md',
  'packages/**/*.md',
  '*.md',
];
/** The list itself, its test, and the page that explains it. */
const EXEMPT = new Set(['tools/check/words.ts', 'tools/check/words.test.ts', 'docs/glossary.md']);
/** Clients read a key and a column of this name in the output of these commands. */
const VERDICT_KEY =
  /^(?:packages\/coracle\/src|test)\/cli\/(?:command-line|delete|doctor|drain|identity)[a-z.-]*:\d+: verdict/i;

interface Pattern {
  readonly term: string;
  readonly pattern: RegExp;
}

const titleCase = (expression: string): string => expression[0]!.toUpperCase() + expression.slice(1);

// Words within identifiers count as well: `isStranger`, `STRANGER_PODS`.
const patternsOf = (words: readonly (readonly [expression: string, term: string])[]): readonly Pattern[] =>
  words.map(([expression, term]) => {
    const word = `(?<![A-Za-z])(?:${expression}|${titleCase(expression)})(?![a-z])`;
    const inCamelCase = `(?<=[a-z])(?:${titleCase(expression)})(?![a-z])`;
    const inCapitals = `(?<![A-Za-z])(?:${expression.replaceAll(/[a-z]/g, (letter) => letter.toUpperCase())})(?![A-Za-z])`;
    return { term, pattern: new RegExp(`${word}|${inCamelCase}|${inCapitals}`, 'g') };
  });

const PATTERNS = patternsOf(OLD_WORDS);

/** The old words of a text, as `line: word (say: term)`. Pure. */
export function oldWords(text: string): string[] {
  return text
    .split('\n')
    .flatMap((line, index) =>
      PATTERNS.flatMap(({ pattern, term }) =>
        [...line.matchAll(pattern)].map(([word]) => `${index + 1}: ${word} (say: ${term})`),
      ),
    );
}

/** The old words of the tree at `root`, as `file:line: word (say: term)`. */
export function checkWords(root: string): string[] {
  return PLACES.flatMap((pattern) => globSync(pattern, { cwd: root }))
    .filter((file) => !EXEMPT.has(file))
    .sort()
    .flatMap((file) => oldWords(readFileSync(join(root, file), 'utf8')).map((found) => `${file}:${found}`))
    .filter((line) => !VERDICT_KEY.test(line));
}
