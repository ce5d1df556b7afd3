/**
 * docs/api-compatibility.md must point at something: each row says yes, partly or no; what is there names a test that
 * exists, what is not there (or not whole) says in a note what is missing.
 */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const root = resolve(fileURLToPath(import.meta.url), '../../..');
const PAGE = 'docs/api-compatibility.md';
const MIN_NOTE = 12;

type Read = (path: string) => string | undefined;

const readHere: Read = (path) => {
  const file = join(root, path);
  return existsSync(file) ? readFileSync(file, 'utf8') : undefined;
};

/** `path`: words of a title, up to a full stop or the end of the cell. */
const PROOF = /^`([^`]+\.test\.ts)`: (.+?)(?:\. ([A-Z].*))?$/;

/** What is wrong with the rows of a page, one line each. */
function faultyRows(page: string, read: Read): string[] {
  const wrong: string[] = [];
  let rows = 0;
  // What npm run docs prints between its comments is checked where it is made.
  const byHand = page.replace(/<!-- Printed[\s\S]*<!-- End[^>]*-->/, '');
  for (const line of byHand.split('\n')) {
    if (!line.startsWith('| ') || line.startsWith('| clause')) continue;
    rows++;
    const cells = line.split('|').slice(1, -1);
    const [clause = '', priority = '', state = '', proof = ''] = cells.map((cell) => cell.trim());
    const say = (problem: string): void => {
      wrong.push(`${clause}: ${problem}`);
    };
    if (cells.length !== 4) say('is not a row of four cells');
    if (!/^P[012]$/.test(priority)) say(`has the priority ${priority}`);
    if (!['yes', 'partly', 'no'].includes(state)) say(`has the state ${state}`);
    const match = PROOF.exec(proof);
    if (state === 'no') {
      if (proof.length < MIN_NOTE) say('is missing, and no note says what that means');
      continue;
    }
    if (!match) {
      say('names no test');
      continue;
    }
    const [, path = '', title = '', note = ''] = match;
    const source = read(path);
    if (source === undefined) say(`there is no ${path}`);
    else if (!source.includes(title)) say(`${path} has no test called ${title}`);
    if (state === 'partly' && note.length < MIN_NOTE) say('is partly there, and no note says what is missing');
  }
  if (rows === 0) wrong.push('there is no row');
  return wrong;
}

test(`${PAGE}: every clause names a test that exists, or says what is missing`, () => {
  assert.deepEqual(faultyRows(readHere(PAGE) ?? '', readHere), []);
});

const read: Read = (path) => (path === 'a.test.ts' ? "test('it works', () => {});" : undefined);
const CASES: readonly (readonly [row: string, expected: RegExp | undefined])[] = [
  ['| a | P0 | yes | `a.test.ts`: it works |', undefined],
  ['| a | P0 | partly | `a.test.ts`: it works. Missing: the other half |', undefined],
  ['| a | P2 | no | nobody has asked for it |', undefined],
  ['| a | P0 | yes | `a.test.ts`: it breaks |', /has no test called it breaks/],
  ['| a | P0 | yes | `b.test.ts`: it works |', /there is no b\.test\.ts/],
  ['| a | P0 | yes | see above |', /names no test/],
  ['| a | P0 | partly | `a.test.ts`: it works |', /no note says what is missing/],
  ['| a | P0 | no | |', /is missing, and no note/],
  ['| a | P7 | maybe | `a.test.ts`: it works |', /priority P7[\s\S]*state maybe/],
  ['| a | P0 | yes |', /four cells/],
  ['', /there is no row/],
];

for (const [row, expected] of CASES) {
  test(`faultyRows(): ${row || 'an empty page'}`, () => {
    const wrong = faultyRows(row, read).join('\n');
    if (expected) assert.match(wrong, expected);
    else assert.equal(wrong, '');
  });
}
