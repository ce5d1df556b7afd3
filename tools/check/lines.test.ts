import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { linesByPackage, linesText } from './lines.ts';

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
});
