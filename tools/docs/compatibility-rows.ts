/**
 * Rows of docs/api-compatibility.md. Those that a test shows stand above the test (`promise-marks.ts`) and are printed between
 * two comments of the page, also of what is not there where a test shows the refusal; the rest is rows written by hand. `npm run docs -- --move` moves rows that
 * name a test into it.
 */
import type { Mark } from './promise-marks.ts';

export interface CompatibilityRow {
  readonly area: string;
  readonly clause: string;
  readonly priority: string;
  readonly state: string;
  readonly file: string;
  /** Words of the test's title. */
  readonly title: string;
  /** What is missing, or how it is meant; empty when there is nothing to say. */
  readonly note: string;
}

/** Where the printed rows of the page begin. */
export const PRINTED = '<!-- Printed by npm run docs from the tests: change it there. -->';
const END = '<!-- End of what is printed. -->';
/** `path`: words of a title, up to a full stop or the end of the cell. */
const PROOF = /^`([^`]+\.test\.ts)`: (.+?)(?:\. ([A-Z].*))?$/;
const MARK = /^(.+), (P[012]), (yes|partly|no): (.+?)(?: Note: (.+))?$/;

/** The parts of a page before, in and after what is printed. */
function partsOf(page: string): readonly [before: string, printed: string, after: string] {
  const begin = page.indexOf(PRINTED);
  const end = page.indexOf(END);
  if (begin < 0 || end < begin) return [page, '', ''];
  return [page.slice(0, begin), page.slice(begin + PRINTED.length, end), page.slice(end + END.length)];
}

/** Rows written by hand that name a test, by the heading above them. Pure. */
export function readCompatibility(page: string): CompatibilityRow[] {
  const rows: CompatibilityRow[] = [];
  let area = '';
  const [before, , after] = partsOf(page);
  for (const line of `${before}\n${after}`.split('\n')) {
    area = /^##+ (?:[\d.]+ )?(.+)$/.exec(line)?.[1] ?? area;
    if (!line.startsWith('| ')) continue;
    const [clause = '', priority = '', state = '', proof = ''] = line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim());
    const [, file, title = '', note = ''] = PROOF.exec(proof) ?? [];
    if (file && (state === 'yes' || state === 'partly'))
      rows.push({ area, clause, priority, state, file, title, note });
  }
  return rows;
}

/** What a row says in its test, behind `// Compat `. */
export const compatibilityText = ({ area, priority, state, clause, note }: CompatibilityRow): string =>
  `${area}, ${priority}, ${state}: ${clause}${note && ` Note: ${note}`}`;

/** The row that a mark says; undefined when it cannot be read. Pure. */
export function rowOfMark({ text = '', file, title = '' }: Mark): CompatibilityRow | undefined {
  const [, area, priority, state, clause, note = ''] = MARK.exec(text) ?? [];
  if (!area || !priority || !state || !clause) return undefined;
  return { area, priority, state, clause, note, file, title };
}

/** The page without the rows written by hand that are in `moved`, and without tables and headings left empty. Pure. */
export function withoutCompatibilityRows(page: string, moved: readonly CompatibilityRow[]): string {
  const gone = new Set(moved.map(({ clause, file }) => `${clause}|${file}`));
  const kept = page.split('\n').filter((line) => {
    if (!line.startsWith('| ')) return true;
    const cells = line.split('|').map((cell) => cell.trim());
    return !gone.has(`${cells[1]}|${PROOF.exec(cells[4] ?? '')?.[1]}`);
  });
  return kept
    .join('\n')
    .replaceAll(/\n\| clause [^\n]*\n\|---[^\n]*\n(?!\|)/g, '\n')
    .replaceAll(/\n{3,}/g, '\n\n')
    .replaceAll(/(?:\n##+ [^\n]*\n+)(?=##+ )/g, '\n')
    .replaceAll(/\n{3,}/g, '\n\n');
}

/** The page with the rows of the tests printed in it, in the order of areas and files. Pure. */
export function withCompatibility(page: string, rows: readonly CompatibilityRow[]): string {
  if (!page.includes(PRINTED)) return page;
  const [before, , after] = partsOf(page);
  const sorted = rows.toSorted(
    (a, b) => compare(a.area, b.area) || compare(a.priority, b.priority) || compare(a.clause, b.clause),
  );
  const lines = sorted.map(
    ({ area, clause, priority, state, file, note }) =>
      `| ${area} | ${clause} | ${priority} | ${state} | [${file.slice(file.lastIndexOf('/') + 1).replace('.test.ts', '')}](../${file})${note && `. ${note}`} |`,
  );
  const count = (state: string): number => rows.filter((row) => row.state === state).length;
  const summary = `${count('yes')} clauses as upstream, ${count('partly')} partly, ${count('no')} not there.`;
  const table = ['| area | clause | P | state | test, note |', '|---|---|---|---|---|', ...lines].join('\n');
  return `${before}${PRINTED}\n\n${summary}\n\n${table}\n\n${END}${after}`;
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
