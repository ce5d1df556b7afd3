import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { pruneCompileCache } from './compile-cache.ts';

const DAY_MS = 86_400_000;
const NOW = 1_800_000_000_000;
const LIMITS = { entries: 8, unusedMs: 30 * DAY_MS };

// S-1001: The compile cache is bounded: folders of Nodes that wrote nothing for 30 days go, and of more than 16,384
//   files the oldest half; nothing else in its folder is touched.
test('the oldest entries and the folders of Nodes that are used no more go, and nothing else', async (t) => {
  const root = mkdtempSync(join(tmpdir(), 'coracle-cache-'));
  t.after(() => rmSync(root, { recursive: true }));
  const age = (path: string, days: number): void => utimesSync(path, NOW / 1000, (NOW - days * DAY_MS) / 1000);
  const fill = (folder: string, { files, days }: { files: number; days: number }): string => {
    const path = join(root, folder);
    mkdirSync(path);
    for (let i = 0; i < files; i++) {
      const file = join(path, `entry-${i}`);
      writeFileSync(file, 'code');
      age(file, i);
    }
    age(path, days);
    return path;
  };
  const current = fill('v26.1.0-x64-0123abcd-0', { files: 9, days: 0 });
  fill('v24.0.0-x64-0123abcd-0', { files: 2, days: 31 });
  const other = fill('v24.0.1-x64-0123abcd-0', { files: 9, days: 29 });
  fill('notes', { files: 9, days: 99 });
  writeFileSync(join(root, 'node-checked'), '');
  age(join(root, 'node-checked'), 99);

  assert.equal(await pruneCompileCache(current, { now: NOW, limits: LIMITS }), 6);
  assert.deepEqual(readdirSync(current).sort(), ['entry-0', 'entry-1', 'entry-2', 'entry-3']);
  assert.equal(readdirSync(other).length, 9);
  assert.deepEqual(readdirSync(root).sort(), [
    'node-checked',
    'notes',
    'v24.0.1-x64-0123abcd-0',
    'v26.1.0-x64-0123abcd-0',
  ]);
  assert.equal(await pruneCompileCache(current, { now: NOW, limits: LIMITS }), 0);
  assert.equal(await pruneCompileCache(join(root, 'notes'), { now: NOW, limits: LIMITS }), 0);
});
