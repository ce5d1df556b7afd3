/**
 * `npm run docs`: prints what the tests say of promises and compatibility into docs/promises.md and docs/api-compatibility.md.
 * `npm run docs -- --move` first moves rows of SPECIFICATION.md and of the compatibility page that name a test into it.
 */
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  compatibilityText,
  PRINTED,
  readCompatibility,
  rowOfMark,
  withCompatibility,
  withoutCompatibilityRows,
} from './compatibility-rows.ts';
import { insertMark, type Mark, type NewMark, readMarks } from './promise-marks.ts';
import { promiseFaults, promisesPage } from './promises-page.ts';
import { readRows, withoutRows } from './specification-rows.ts';

const PLACES = [
  'packages/*/src/**/*.test.ts',
  'packages/*/src/**/*.contract.ts',
  'test/**/*.ts',
  'tools/**/*.test.ts',
  'bench/**/*.test.ts',
];
/** Tests of this tool, whose texts hold marks. */
const OWN = 'tools/docs/';
const SPECIFICATION = 'SPECIFICATION.md';
const PROMISES = 'docs/promises.md';
const COMPATIBILITY = 'docs/api-compatibility.md';
const GUARANTEES = 'docs/guarantees.md';
const MAX_GUARANTEES = 40;

const read = (root: string, path: string): string => {
  try {
    return readFileSync(join(root, path), 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return '';
    throw error;
  }
};

const allMarks = (root: string): Mark[] =>
  PLACES.flatMap((pattern) => globSync(pattern, { cwd: root }))
    .filter((file) => !file.startsWith(OWN))
    .sort()
    .flatMap((file) => readMarks(file, read(root, file)));

interface Outcome {
  /** Pages by path, as they should be. */
  readonly pages: ReadonlyMap<string, string>;
  readonly wrong: readonly string[];
}

/** What the pages of the tree at `root` should be, and what is wrong with what they are made of. */
function derivePages(root: string): Outcome {
  const marks = allMarks(root);
  const { rows, wrong } = readRows(read(root, SPECIFICATION));
  const elsewhere = new Set(rows.map(({ id }) => id));
  const compatibility = marks.filter(({ key }) => key === 'Compat');
  const compatibilityRows = compatibility.map(rowOfMark);
  const guarantees = read(root, GUARANTEES);
  const count = [...guarantees.matchAll(/^\d+\. /gm)].length;
  const numbers = new Set([...elsewhere, ...marks.map(({ key }) => key)]);
  return {
    pages: new Map([
      [PROMISES, promisesPage(marks)],
      [
        COMPATIBILITY,
        withCompatibility(
          read(root, COMPATIBILITY),
          compatibilityRows.filter((row) => row !== undefined),
        ),
      ],
    ]),
    wrong: [
      ...wrong.map((line) => `${SPECIFICATION}: ${line}`),
      ...promiseFaults(marks, elsewhere),
      ...compatibility
        .filter((_, index) => !compatibilityRows[index])
        .map(({ file, line }) => `${file}:${line}: not "Compat AREA, P0|P1|P2, yes|partly|no: CLAUSE"`),
      ...(count > MAX_GUARANTEES ? [`${GUARANTEES}: ${count} guarantees, at most ${MAX_GUARANTEES}`] : []),
      ...[...guarantees.matchAll(/S-\d+/g)]
        .filter(([id]) => !numbers.has(id))
        .map(([id]) => `${GUARANTEES}: there is no ${id}`),
    ],
  };
}

/** What is stale or wrong in the pages that are printed from the tests of the tree at `root`, one line each. */
export function checkDocs(root: string): string[] {
  const { pages, wrong } = derivePages(root);
  const stale = [...pages].filter(([path, text]) => read(root, path) !== text);
  return [...wrong, ...stale.map(([path]) => `${path}: not what the tests say, run npm run docs`)];
}

/** Moves rows of the pages into their tests. Returns the rows that could not be moved, one line each. */
function moveRows(root: string): string[] {
  const stuck: string[] = [];
  const insert = (file: string, mark: NewMark): boolean => {
    const source = read(root, file);
    const next = insertMark(source, mark);
    if (next === undefined) stuck.push(`${mark.head} ${mark.text}: ${file} has no test named ${mark.title}`);
    else if (next !== source) writeFileSync(join(root, file), next);
    return next !== undefined;
  };
  const specification = read(root, SPECIFICATION);
  const moved = new Set<string>();
  for (const { id, text, isPending, proofs } of readRows(specification).rows) {
    if (isPending || proofs.length === 0) continue;
    const isWhole = proofs.map(({ file, title }, index) =>
      insert(file, { head: index === 0 ? `${id}:` : id, text: index === 0 ? text : '', title }),
    );
    if (isWhole.every(Boolean)) moved.add(id);
  }
  writeFileSync(join(root, SPECIFICATION), withoutRows(specification, moved));
  const page = read(root, COMPATIBILITY);
  if (!page.includes(PRINTED)) return stuck;
  const movedRows = readCompatibility(page).filter((row) =>
    insert(row.file, { head: 'Compat', text: compatibilityText(row), title: row.title, isPart: true }),
  );
  writeFileSync(join(root, COMPATIBILITY), withoutCompatibilityRows(page, movedRows));
  return stuck;
}

if (import.meta.main) {
  const root = resolve(fileURLToPath(import.meta.url), '../../..');
  const stuck = process.argv.includes('--move') ? moveRows(root) : [];
  const { pages, wrong } = derivePages(root);
  for (const [path, text] of pages) writeFileSync(join(root, path), text);
  for (const line of [...stuck, ...wrong]) console.error(line);
  process.exitCode = stuck.length + wrong.length > 0 ? 1 : 0;
}
