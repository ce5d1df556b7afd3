/**
 * Promises stand in the tests that prove them, as comments above a test (or the loop that makes it):
 *
 *     // S-009: A reader that stays behind is disconnected and harms nobody; a change is encoded once for
 *     //   all watchers.
 *     test('a reader that stays behind for ten seconds is disconnected', …);
 *
 *     // S-009
 *     test('two watchers are sent the same buffer', …);
 *
 * One place has the sentence, the others the number alone. Rows of the compatibility page stand there the same way:
 *
 *     // Compat Patch, P1, partly: merge patches. Note: what is missing
 */

/** One comment above a test. `text` is undefined where the number stands alone. */
export interface Mark {
  /** `S-009`, or `Compat`. */
  readonly key: string;
  readonly text?: string;
  readonly file: string;
  /** From 1. */
  readonly line: number;
  /** Title of the test below, as it stands in the file; undefined when no test follows. */
  readonly title?: string;
}

const WIDTH = 120;
const START = /^\s*\/\/ (S-\d+|Compat)(?:(?::| (?=\S))\s*(.*))?$/;
const MORE = /^\s*\/\/ {3}(\S.*)$/;
const CALL = /\b(?:test|it|describe)(?:\.\w+)?\(\s*(['"`])((?:\\.|(?!\1)[^\\])*)\1/g;
const NAME = /\bname: (['"`])((?:\\.|(?!\1)[^\\])*)\1/g;

interface TestPlace {
  readonly title: string;
  /** Line of the call, from 0. */
  readonly line: number;
}

/**
 * The tests of a source in order: calls of `test`, `it` and `describe`; in a table of cases, which has no such calls, the values
 * of `name`. Titles without the escapes of their quotes; templates as they stand.
 */
export function testPlaces(source: string): TestPlace[] {
  const calls = [...source.matchAll(CALL)];
  const places: TestPlace[] = [];
  let line = 0;
  let at = 0;
  for (const { index, 1: quote, 2: raw = '' } of calls.length > 0 ? calls : source.matchAll(NAME)) {
    for (; at < index; at++) if (source.charCodeAt(at) === 10) line++;
    places.push({ title: quote === '`' ? raw : raw.replaceAll(/\\(['"\\])/g, '$1'), line });
  }
  return places;
}

/** The marks of a source in order. Pure. */
export function readMarks(file: string, source: string): Mark[] {
  if (!source.includes('// S-') && !source.includes('// Compat ')) return [];
  const lines = source.split('\n');
  const places = testPlaces(source);
  const marks: Mark[] = [];
  for (let i = 0; i < lines.length; i++) {
    const start = START.exec(lines[i]!);
    if (!start) continue;
    const parts = start[2] ? [start[2]] : [];
    const first = i;
    for (let more = MORE.exec(lines[i + 1] ?? ''); more; more = MORE.exec(lines[i + 1] ?? '')) {
      parts.push(more[1]!);
      i++;
    }
    const title = places.find(({ line }) => line > i)?.title;
    marks.push({
      key: start[1]!,
      ...(parts.length > 0 && { text: parts.join(' ') }),
      file,
      line: first + 1,
      ...(title !== undefined && { title }),
    });
  }
  return marks;
}

/** The lines of one mark, wrapped. */
function markLines(head: string, text: string, indent: string): string[] {
  const lines: string[] = [];
  let line = `${indent}// ${head}`;
  for (const word of text.split(' ').filter((part) => part !== '')) {
    if (line.length + 1 + word.length > WIDTH) {
      lines.push(line);
      line = `${indent}//   ${word}`;
    } else line += ` ${word}`;
  }
  return [...lines, line];
}

export interface NewMark {
  /** `S-009:`, `S-009` or `Compat`. */
  readonly head: string;
  /** Empty where the number stands alone. */
  readonly text: string;
  /** The test's title, or its beginning or a part of it where `isPart`. */
  readonly title: string;
  readonly isPart?: boolean;
}

/** The source with a mark above the test that it names; undefined when there is no such test. Pure. */
export function insertMark(source: string, { head, text, title, isPart = false }: NewMark): string | undefined {
  const place =
    testPlaces(source).find((test) => test.title === title) ??
    (isPart ? testPlaces(source).find((test) => test.title.includes(title)) : undefined);
  if (!place) return undefined;
  const lines = source.split('\n');
  let at = place.line;
  // Above the loop where the test is all of its body: the formatter moves comments there.
  if (/^\s*(?:for \(.*\)|\] as const\)|\]\))$/.test(lines[at - 1] ?? '')) {
    at--;
    while (at > 0 && !/^\s*for \(/.test(lines[at]!)) at--;
  }
  while (/^\s*\/\/ biome-ignore/.test(lines[at - 1] ?? '')) at--;
  const indent = /^\s*/.exec(lines[at]!)![0];
  const added = markLines(head, text, indent);
  if (
    lines
      .slice(Math.max(0, at - 12), at)
      .join('\n')
      .endsWith(added.join('\n'))
  )
    return source;
  return [...lines.slice(0, at), ...added, ...lines.slice(at)].join('\n');
}
