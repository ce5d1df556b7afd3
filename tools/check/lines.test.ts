import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { test } from 'node:test';
import { linesByPackage, linesText, NEWER_ROOMS, sinceText, YOUNGER_FILES } from './lines.ts';

test('lines are counted by package, without tests and what is generated', (t) => {
  const root = mkdtempSync(join(tmpdir(), 'coracle-lines-'));
  t.after(() => rmSync(root, { recursive: true }));
  for (const [file, text] of [
    ['one/src/a.ts', 'a\nb\n'],
    ['two/src/deep/a.ts', 'a\nb\nc\n'],
    ['two/src/a.test.ts', 'a\n'],
    ['two/src/a.generated.ts', 'a\n'],
    ['two/src/README.md', 'a\n'],
  ] as const) {
    mkdirSync(join(root, 'packages', file, '..'), { recursive: true });
    writeFileSync(join(root, 'packages', file), text);
  }
  assert.deepEqual(linesByPackage(root), [
    ['two', 3],
    ['one', 2],
  ]);
  assert.equal(linesText(linesByPackage(root)), 'two 3, one 2, all 5');
  assert.deepEqual(linesByPackage(root, ['two/src/deep', 'one/sr']), [['one', 2]]);
  assert.deepEqual(linesByPackage(root, ['two/src/deep/a.ts', 'one/src/a']), [['one', 2]]);
});

test('lines are compared with those of before', () => {
  assert.equal(sinceText([['one', 124_000]]), '124,738 then, 124,000 now (-738)');
  assert.equal(sinceText([['one', 125_738]]), '124,738 then, 125,738 now (+1,000)');
});

const root = resolve(import.meta.dirname, '../..');

test('every younger room and file is there', () => {
  assert.deepEqual(
    [...NEWER_ROOMS, ...YOUNGER_FILES].filter((path) => !existsSync(join(root, 'packages', path))),
    [],
  );
});

test('a younger file is counted once, in a room that is not younger', () => {
  assert.equal(new Set(YOUNGER_FILES).size, YOUNGER_FILES.length);
  assert.deepEqual(
    YOUNGER_FILES.filter((file) => NEWER_ROOMS.some((room) => file.startsWith(`${room}/`))),
    [],
  );
});

/** Lines that say something: long enough not to stand everywhere, no imports, no comments. */
const telling = (text: string): string[] =>
  text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line.length >= 25 && !/^(import|\/\/|\*|\/\*|export \{|\} from)/.test(line));

test('less than a fifth of a younger file stood in src/ then', (t) => {
  const then = ['6f59d08e', '--', 'src/*.ts', ':!*.test.ts', ':!*.contract.ts', ':!*.fixture.ts'];
  let text = '';
  try {
    text = execFileSync('git', ['grep', '-hE', '.{25}', ...then], { cwd: root, encoding: 'utf8', maxBuffer: 1 << 26 });
  } catch {
    return t.skip('needs the history: this checkout does not have commit 6f59d08e');
  }
  const old = new Set(telling(text));
  const shareOf = (file: string): number => {
    const lines = telling(readFileSync(join(root, 'packages', file), 'utf8'));
    return lines.filter((line) => old.has(line)).length / Math.max(1, lines.length);
  };
  assert.deepEqual(
    YOUNGER_FILES.filter((file) => shareOf(file) >= 0.2),
    [],
  );
});
