import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { openRotatingFile } from './rotating-file.ts';

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(() => setImmediate(resolve)));

test('a file is put aside at its size, the newest ones are kept, and only the owner may read them', async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'coracle-rotate-'));
  t.after(() => rmSync(directory, { recursive: true }));
  const path = join(directory, 'audit.log');
  writeFileSync(join(directory, 'audit-notes.log'), 'somebody else’s');
  let now = Date.UTC(2030, 0, 1);
  const file = openRotatingFile(path, { maxBytes: 10, maxBackups: 2, now: () => now, onError: assert.ifError });
  for (const line of ['one\n', 'two\n', 'three\n', 'four\n', 'five-and-more-than-it-holds\n', 'six\n']) {
    file.write(line);
    await turn();
    now += 1000;
  }
  file.close();
  assert.equal(readFileSync(path, 'utf8'), 'six\n');
  assert.equal(statSync(path).mode & 0o777, 0o600);
  const aside = readdirSync(directory).filter((name) => /-2030/.test(name));
  assert.deepEqual(
    aside.map((name) => readFileSync(join(directory, name), 'utf8')),
    ['four\n', 'five-and-more-than-it-holds\n'],
  );
  assert.ok(readdirSync(directory).includes('audit-notes.log'));
});

test('lines of one turn are written together, and an opened file is gone on with', async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'coracle-rotate-'));
  t.after(() => rmSync(directory, { recursive: true }));
  const path = join(directory, 'a.log');
  const open = () => openRotatingFile(path, { maxBytes: 1e6, maxBackups: 1, now: () => 0, onError: assert.ifError });
  const first = open();
  first.write('a\n');
  first.write('b\n');
  first.close();
  const second = open();
  second.write('c\n');
  second.close();
  assert.equal(readFileSync(path, 'utf8'), 'a\nb\nc\n');
});
