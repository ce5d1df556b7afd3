import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { checkReadmes, longLines, namesIn } from './readmes.ts';

test('longLines(): text beyond 100 columns is reported; tables, code and links may be longer', () => {
  const long = 'x'.repeat(101);
  const lines = [long, `| ${long}`, `    ${long}`, '```', long, '```', `[a](${long})`];
  assert.deepEqual(longLines(lines.join('\n')), ['1: 101 columns']);
});

test('namesIn(): names in backticks, without arguments and symbols, outside code blocks', () => {
  assert.deepEqual(namesIn('`a.ts`, `run(x)`, `b.ts:name`\n```\n`no`\n```\n'), ['a.ts', 'run', 'b.ts']);
});

test('checkReadmes(): files, functions and rooms that are not there, and folders that nobody describes', () => {
  const root = mkdtempSync(join(tmpdir(), 'readmes-'));
  const files = {
    'packages/a/README.md': '`src/one`, `two.ts`, `gone.ts`, `doThis()`, `doThat()`, `a/one`, `a/three`\n',
    'packages/a/src/two.ts': 'export function doThis() {}\n',
    'packages/a/src/one/one.ts': '',
    'packages/a/src/four/four.ts': '',
  };
  for (const [file, text] of Object.entries(files)) {
    mkdirSync(join(root, dirname(file)), { recursive: true });
    writeFileSync(join(root, file), text);
  }
  try {
    assert.deepEqual(checkReadmes(root), [
      'packages/a/README.md: `gone.ts` is not in the tree',
      'packages/a/README.md: `doThat` is not in the tree',
      'packages/a/README.md: `a/three` is not in the tree',
      'packages/a/src/four: no README, and none above names it',
    ]);
  } finally {
    rmSync(root, { recursive: true });
  }
});
