import assert from 'node:assert/strict';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { test } from 'node:test';
import { linesByPackage, linesText, NEWER_ROOMS, sinceText } from './lines.ts';

test('lines are counted by package, without tests', (t) => {
  const root = mkdtempSync(join(tmpdir(), 'coracle-lines-'));
  t.after(() => rmSync(root, { recursive: true }));
  for (const [file, text] of [
    ['one/src/a.ts', 'a\nb\n'],
    ['two/src/deep/a.ts', 'a\nb\nc\n'],
    ['two/src/a.test.ts', 'a\n'],
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
});

test('lines are compared with those of before', () => {
  assert.equal(sinceText([['one', 124_000]]), '124,738 then, 124,000 now (-738)');
  assert.equal(sinceText([['one', 125_738]]), '124,738 then, 125,738 now (+1,000)');
});

test('every younger room is there', () => {
  const packages = resolve(import.meta.dirname, '../../packages');
  assert.deepEqual(
    NEWER_ROOMS.filter((room) => !existsSync(join(packages, room))),
    [],
  );
});
