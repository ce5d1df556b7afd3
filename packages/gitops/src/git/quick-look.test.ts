/** Answers to `ls-refs`, as gitprotocol-v2(5) has them, and what is none. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { commitIn } from './quick-look.ts';

const A = 'a'.repeat(40);
const B = 'b'.repeat(40);
const LONG = 'c'.repeat(64);
const line = (text: string): string => `${(text.length + 4).toString(16).padStart(4, '0')}${text}`;

const ANSWERS: readonly [what: string, answer: string, commit: string | undefined][] = [
  ['the branch', `${line(`${A} refs/heads/main\n`)}0000`, A],
  ['no newline at the end', `${line(`${A} refs/heads/main`)}0000`, A],
  ['a commit by SHA-256', `${line(`${LONG} refs/heads/main\n`)}0000`, LONG],
  ['branches of longer names beside it', `${line(`${B} refs/heads/main-2\n`)}${line(`${A} refs/heads/main\n`)}0000`, A],
  ['another branch alone', `${line(`${B} refs/heads/main-2\n`)}0000`, undefined],
  ['nothing', '0000', undefined],
  ['an answer that was cut off', line(`${A} refs/heads/main\n`), undefined],
  ['a line that was cut off', `${line(`${A} refs/heads/main\n`).slice(0, -3)}0000`, undefined],
  ['more after its end', `${line(`${A} refs/heads/main\n`)}00000000`, undefined],
  ['a length that is none', `zzzz${A} refs/heads/main\n0000`, undefined],
  ['an error', `${line('ERR access denied\n')}0000`, undefined],
  ['an older protocol', `${line('# service=git-upload-pack\n')}0000`, undefined],
  ['a page of a proxy', '<html>sign in</html>', undefined],
];

for (const [what, answer, commit] of ANSWERS)
  test(what, () => {
    assert.equal(commitIn(Buffer.from(answer), 'refs/heads/main'), commit);
  });
