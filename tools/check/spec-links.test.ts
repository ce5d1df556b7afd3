/**
 * Pages that point into the code must point at something: every promise of SPECIFICATION.md is proved by a test that
 * exists or says `[pending]`; every relative link, and every `file:symbol` of README.md and docs/, leads somewhere.
 */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '../..');

/** A file's text by its path below the root; undefined when there is none. */
type Read = (path: string) => string | undefined;

const readHere: Read = (path) => {
  const file = join(root, path);
  return existsSync(file) && path !== '' ? readFileSync(file, 'utf8') : undefined;
};

const PROMISE = /^- \*\*S-(\d+)\*\* (.+)$/;
const PROOF = /^ {2}- \[([^\]]+)\]\(([^)]+)\): (`+)(.+)\3$/;

/**
 * Names given to `test`, `it` and `describe` calls, as they stand between their quotes; in a table of cases, which has
 * no such calls, the values of `name`.
 */
function testNames(source: string): Set<string> {
  const names = new Set<string>();
  const call = /\b(?:test|it|describe)(?:\.\w+)?\(\s*(['"`])((?:\\.|(?!\1)[^\\])*)\1/g;
  const found = [...source.matchAll(call)];
  for (const [, quote, name] of found.length > 0
    ? found
    : source.matchAll(/\bname: (['"`])((?:\\.|(?!\1)[^\\])*)\1/g)) {
    const text = name ?? '';
    names.add(quote === '`' ? text : text.replace(/\\(['"\\])/g, '$1'));
  }
  return names;
}

/** What is wrong with the promises of a page, one line each. */
function deadPromises(page: string, read: Read): string[] {
  const wrong: string[] = [];
  const numbers = new Set<string>();
  let open: { id: string; pending: boolean; proofs: number } | undefined;
  const finish = (): void => {
    if (open && open.pending === open.proofs > 0)
      wrong.push(`${open.id}: ${open.pending ? 'is pending and has a proof' : 'has neither a proof nor [pending]'}`);
    open = undefined;
  };
  for (const line of page.split('\n')) {
    const promise = PROMISE.exec(line);
    if (promise) {
      finish();
      const id = `S-${promise[1]}`;
      if (numbers.has(id)) wrong.push(`${id}: its number is given twice`);
      numbers.add(id);
      open = { id, pending: promise[2]!.endsWith('`[pending]`'), proofs: 0 };
      continue;
    }
    if (!line.startsWith('  - ')) {
      finish();
      continue;
    }
    const proof = PROOF.exec(line);
    if (!proof || !open) {
      wrong.push(`not a proof of a promise: ${line}`);
      continue;
    }
    open.proofs++;
    const [, shown, path = '', , name = ''] = proof;
    const source = read(path);
    if (shown !== path) wrong.push(`${open.id}: shows ${shown} and links to ${path}`);
    if (source === undefined) wrong.push(`${open.id}: there is no ${path}`);
    else if (!testNames(source).has(name)) wrong.push(`${open.id}: ${path} has no test named ${name}`);
  }
  finish();
  return wrong;
}

/** Relative links without a target, and `file` or `file:symbol` in code quotes that are not there. */
function deadLinks(page: string, { path, read }: { readonly path: string; readonly read: Read }): string[] {
  const wrong: string[] = [];
  for (const [, target = ''] of page.matchAll(/\]\(([^)\s#]+)[^)]*\)/g))
    if (!/^[a-z]+:/.test(target) && !existsSync(join(root, dirname(path), target)))
      wrong.push(`${path}: links to ${target}`);
  for (const [, file = '', symbol] of page.matchAll(
    /`((?:packages|test|tools|examples)\/[\w./-]+\.\w+)(?::(\w+))?`/g,
  )) {
    const source = read(file);
    if (source === undefined) wrong.push(`${path}: names ${file}`);
    else if (symbol !== undefined && !new RegExp(`\\b${symbol}\\b`).test(source))
      wrong.push(`${path}: names ${symbol} of ${file}`);
  }
  return wrong;
}

// S-099: Every promise of this page has a proof that exists, or says that it is pending.
test('SPECIFICATION.md: every promise is proved by a test that exists, or pending', () => {
  assert.deepEqual(deadPromises(readHere('SPECIFICATION.md') ?? '', readHere), []);
});

test('no page holds what a merge left undecided', () => {
  const folders = ['docs', 'packages', 'test', 'tools', 'bench', 'examples'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name)),
  );
  const pages = [...readdirSync(root), ...folders].filter((name) => name.endsWith('.md'));
  assert.ok(pages.includes('CHANGELOG.md'));
  assert.deepEqual(
    pages.filter((path) => /^(<{7}|={7}|>{7})( |$)/m.test(readHere(path) ?? '')),
    [],
  );
});

test('README.md and docs/: every link and every file:symbol leads somewhere', () => {
  const docs = readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => join('docs', name));
  const pages = ['README.md', 'SECURITY.md', 'CHANGELOG.md', ...docs];
  assert.ok(docs.length > 10);
  assert.deepEqual(
    pages.flatMap((path) => deadLinks(readHere(path) ?? '', { path, read: readHere })),
    [],
  );
});

const SOURCE = `test('plain', () => {});\n  it("it's quoted", f);\ndescribe(\`\${kind}: made\`, () => {});\ntest(\n  'with \\'quotes\\'',`;
const FILES: Readonly<Record<string, string>> = { 'a.test.ts': SOURCE, 'cases.ts': "[{ name: 'apply', steps: [] }]" };
const CASES: readonly (readonly [name: string, page: string, expected: RegExp | undefined])[] = [
  ['a proof', '- **S-001** A.\n  - [a.test.ts](a.test.ts): `plain`', undefined],
  ['a name in double quotes', "- **S-001** A.\n  - [a.test.ts](a.test.ts): `it's quoted`", undefined],
  ['a name with escapes', "- **S-001** A.\n  - [a.test.ts](a.test.ts): `with 'quotes'`", undefined],
  // biome-ignore lint/suspicious/noTemplateCurlyInString: the name as it stands in the file
  ['a name that is a template', '- **S-001** A.\n  - [a.test.ts](a.test.ts): `${kind}: made`', undefined],
  ['a table of cases', '- **S-001** A.\n  - [cases.ts](cases.ts): `apply`', undefined],
  ['pending', '- **S-001** A. `[pending]`', undefined],
  ['no proof', '- **S-001** A.\n- **S-002** B. `[pending]`', /S-001: has neither/],
  ['pending with a proof', '- **S-001** A. `[pending]`\n  - [a.test.ts](a.test.ts): `plain`', /S-001: is pending and/],
  ['no such file', '- **S-001** A.\n  - [b.test.ts](b.test.ts): `plain`', /there is no b.test.ts/],
  ['no such test', '- **S-001** A.\n  - [a.test.ts](a.test.ts): `plai`', /has no test named plai/],
  ['a link that shows another file', '- **S-001** A.\n  - [b.test.ts](a.test.ts): `plain`', /shows b.test.ts/],
  ['a proof that cannot be read', '- **S-001** A.\n  - see a.test.ts', /not a proof/],
  ['a number twice', '- **S-001** A. `[pending]`\n- **S-001** B. `[pending]`', /given twice/],
];

for (const [name, page, expected] of CASES) {
  test(`deadPromises(): ${name}`, () => {
    const wrong = deadPromises(page, (path) => FILES[path]).join('\n');
    if (expected) assert.match(wrong, expected);
    else assert.equal(wrong, '');
  });
}

test('deadLinks() finds what is gone and passes what is there', () => {
  const read: Read = (path) => (path === 'packages/a.ts' ? 'const HERE = 1;' : undefined);
  const page =
    '[x](README.md) [y](nowhere.md#z) [w](https://example.org/) `packages/a.ts:HERE` `packages/a.ts:GONE` `packages/b.ts` `packages/a.ts`';
  assert.deepEqual(deadLinks(page, { path: 'README.md', read }), [
    'README.md: links to nowhere.md',
    'README.md: names GONE of packages/a.ts',
    'README.md: names packages/b.ts',
  ]);
});
