import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { buildFacts } from './build-facts.ts';

const ONE = '1'.repeat(40);
const TWO = '2'.repeat(40);

const CASES: readonly { name: string; files: Record<string, string>; commit: string | undefined }[] = [
  { name: 'no checkout', files: {}, commit: undefined },
  { name: 'a commit checked out by itself', files: { HEAD: `${ONE}\n` }, commit: ONE },
  {
    name: 'a branch, newer than its packed form',
    files: { HEAD: 'ref: refs/heads/main\n', 'refs/heads/main': `${ONE}\n`, 'packed-refs': `${TWO} refs/heads/main\n` },
    commit: ONE,
  },
  {
    name: 'a packed branch',
    files: {
      HEAD: 'ref: refs/heads/main\n',
      'packed-refs': `# pack-refs with: peeled\n${ONE} refs/heads/not/refs/heads/main\n${TWO} refs/heads/main\n`,
    },
    commit: TWO,
  },
  { name: 'a branch without commits', files: { HEAD: 'ref: refs/heads/main\n' }, commit: undefined },
  { name: 'something else', files: { HEAD: 'gitdir: elsewhere\n' }, commit: undefined },
];

for (const { name, files, commit } of CASES) {
  test(`buildFacts(): ${name}`, () => {
    const root = mkdtempSync(join(tmpdir(), 'coracle-build-'));
    try {
      for (const [file, text] of Object.entries(files)) {
        mkdirSync(dirname(join(root, '.git', file)), { recursive: true });
        writeFileSync(join(root, '.git', file), text);
      }
      assert.equal(buildFacts(root).commit, commit);
    } finally {
      rmSync(root, { recursive: true });
    }
  });
}
