import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readCompatibility, rowOfMark, withCompatibility, withoutCompatibilityRows } from './compatibility-rows.ts';
import { insertMark, readMarks } from './promise-marks.ts';
import { promiseFaults, promisesPage } from './promises-page.ts';
import { readRows, withoutRows } from './specification-rows.ts';

const LONG = 'A reader that stays behind is disconnected and harms nobody; a change is encoded once for all watchers.';
const SOURCE = `import { test } from 'node:test';

test('first', () => {});
for (const [name] of CASES)
  test(\`\${name}: made\`, () => {});
// biome-ignore lint/x: because
it("it's quoted", () => {});
`;

const TITLES: readonly (readonly [title: string, above: string])[] = [
  ['first', "test('first', () => {});"],
  // biome-ignore lint/suspicious/noTemplateCurlyInString: the name as it stands in the file
  ['${name}: made', 'for (const [name] of CASES)'],
  ["it's quoted", '// biome-ignore lint/x: because'],
];

for (const [title, above] of TITLES)
  test(`a promise that is moved stands above its test, and is read there: ${title}`, () => {
    const source = insertMark(SOURCE, { head: 'S-009:', text: `${LONG} ${LONG}`, title })!;
    const [mark, ...more] = readMarks('a.test.ts', source);
    assert.deepEqual(more, []);
    assert.equal(mark?.key, 'S-009');
    assert.equal(mark.text, `${LONG} ${LONG}`);
    assert.equal(mark.title, title);
    assert.ok(source.split('\n').every((line) => line.length <= 120));
    assert.ok(source.includes(`//   ${source.split('//   ').at(-1)!.split('\n')[0]}\n${above}`));
    assert.equal(insertMark(source, { head: 'S-009:', text: `${LONG} ${LONG}`, title }), source);
  });

test('a test that is not there takes no promise', () => {
  assert.equal(insertMark(SOURCE, { head: 'S-009', text: '', title: 'fir' }), undefined);
});

test('a table of cases takes promises above the name of a case', () => {
  const source = insertMark("[\n  {\n    name: 'apply',\n  },\n]", { head: 'S-001', text: '', title: 'apply' });
  assert.equal(source, "[\n  {\n    // S-001\n    name: 'apply',\n  },\n]");
});

test('rows of the specification are read, and go when they have moved', () => {
  const page =
    '# S\n\n- **S-001** A.\n  - [a.test.ts](a.test.ts): `first`\n- **S-002** B. `[pending]`\n- **S-003** C.\n  - see a.test.ts\n';
  const { rows, wrong } = readRows(page);
  assert.deepEqual(rows, [
    { id: 'S-001', text: 'A.', isPending: false, proofs: [{ file: 'a.test.ts', title: 'first' }] },
    { id: 'S-002', text: 'B.', isPending: true, proofs: [] },
    { id: 'S-003', text: 'C.', isPending: false, proofs: [] },
  ]);
  assert.deepEqual(wrong, ['not a proof of a promise:   - see a.test.ts']);
  assert.equal(withoutRows(page, new Set(['S-001', 'S-003'])), '# S\n\n- **S-002** B. `[pending]`\n');
});

test('the page of promises lists each sentence once, with every file that proves it', () => {
  const marks = [
    ...readMarks('packages/cel/src/b.test.ts', "// S-002\ntest('b', f);"),
    ...readMarks('test/features/a.test.ts', "// S-002: Two | bars.\n// S-001: One.\ntest('a', f);"),
  ];
  assert.deepEqual(promiseFaults(marks, new Set()), []);
  const page = promisesPage(marks);
  assert.match(
    page,
    /## Features[^\n]*\n\n.*\n.*\n\| \[a\].* S-001 \| One\. \| {2}\|\n\| \[a\].* S-002 \| Two \\\| bars\. \| \[b\]/,
  );
});

const FAULTS: readonly (readonly [source: string, expected: string])[] = [
  ['// S-001: One.', 'a.test.ts:1: no test follows S-001'],
  ["// S-001: One.\n// S-001: Two.\ntest('a', f);", 'a.test.ts:2: S-001 is said in a.test.ts already'],
  ["// S-001\ntest('a', f);", 'a.test.ts:1: S-001 is said nowhere'],
  ["// S-009: Nine.\ntest('a', f);", 'a.test.ts:1: S-009 is said on a page already'],
];

for (const [source, expected] of FAULTS)
  test(`promiseFaults(): ${expected}`, () => {
    assert.deepEqual(promiseFaults(readMarks('a.test.ts', source), new Set(['S-009'])), [expected]);
  });

const COMPATIBILITY = `# C

<!-- Printed by npm run docs from the tests: change it there. -->
<!-- End of what is printed. -->

## 7. Patch

| clause | P | state | test, note |
|---|---|---|---|
| merge patches | P0 | partly | \`a.test.ts\`: first. Missing: the rest |

## 8. Rest

| clause | P | state | test, note |
|---|---|---|---|
| exec | P2 | no | there is no container |
`;

test('a row of compatibility moves into its test, is printed from there, and what is not there stays', () => {
  const rows = readCompatibility(COMPATIBILITY);
  const note = 'Missing: the rest';
  const row = {
    area: 'Patch',
    clause: 'merge patches',
    priority: 'P0',
    state: 'partly',
    file: 'a.test.ts',
    title: 'first',
    note,
  };
  assert.deepEqual(rows, [row]);
  const [mark] = readMarks('a.test.ts', `// Compat Patch, P0, partly: merge patches Note: ${note}\ntest('first', f);`);
  assert.deepEqual(rowOfMark(mark!), row);
  const page = withCompatibility(withoutCompatibilityRows(COMPATIBILITY, rows), [row]);
  assert.match(page, /\| Patch \| merge patches \| P0 \| partly \| \[a\]\(\.\.\/a\.test\.ts\)\. Missing: the rest \|/);
  assert.match(page, /0 clauses as upstream, 1 partly, 0 not there/);
  assert.match(page, /\| exec \| P2 \| no/);
  assert.doesNotMatch(page, /7\. Patch/);
  assert.equal(withCompatibility(page, [row]), page);
  const [refusal] = readMarks(
    'b.test.ts',
    `// Compat Pods, P2, no: exec Note: there is no container\ntest('second', f);`,
  );
  const both = withCompatibility(page, [row, rowOfMark(refusal!)!]);
  assert.match(both, /\| Pods \| exec \| P2 \| no \| \[b\]\(\.\.\/b\.test\.ts\)\. there is no container \|/);
  assert.match(both, /0 clauses as upstream, 1 partly, 1 not there/);
});
