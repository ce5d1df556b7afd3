/** Set-up is idempotent and quiet: where everything is there, neither npm nor apt-get is asked for anything. */
import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { test } from 'node:test';
import { ensurePrograms } from '../../tools/setup/host-packages.ts';
import { root, runProgram } from './workspace.ts';

/** A directory whose `npm`, `apt-get` and `sudo` fail loudly when they are run. */
function refusingPrograms(t: { after(end: () => void): void }): string {
  const dir = mkdtempSync(join(tmpdir(), 'coracle-setup-'));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  mkdirSync(join(dir, 'bin'));
  for (const name of ['npm', 'apt-get', 'sudo']) {
    const path = join(dir, 'bin', name);
    writeFileSync(path, `#!/bin/sh\necho "${name} was run: $*" >&2\nexit 97\n`);
    chmodSync(path, 0o755);
  }
  return join(dir, 'bin');
}

// S-096: Set-up is idempotent and quiet; a second run costs under half a second.
test('a second set-up installs nothing and says nothing', async (t) => {
  const bin = refusingPrograms(t);
  const PATH = `${bin}${delimiter}${process.env['PATH'] ?? ''}`;
  const said = await runProgram('sh', [join(root, 'tools/setup/run.sh'), 'packages/coracle/src/main.ts', 'version'], {
    PATH,
  });
  assert.deepEqual([said.code, said.stderr], [0, '']);
  assert.match(said.stdout, /^coracle \S+/);
});

test('npm run demo -- --help prints help and starts nothing; a flag it does not know is one line', async (t) => {
  const bin = refusingPrograms(t);
  const PATH = `${bin}${delimiter}${process.env['PATH'] ?? ''}`;
  const demo = (...argv: string[]) =>
    runProgram('sh', [join(root, 'tools/setup/run.sh'), 'tools/demo/demo.ts', ...argv], { PATH });
  const help = await demo('--help');
  assert.deepEqual([help.code, help.stderr], [0, '']);
  assert.match(help.stdout, /--once/);
  const unknown = await demo('--frob');
  assert.equal(unknown.code, 1);
  assert.match(unknown.stderr, /^error: .*--frob.*\n$/);
});

test('programs that are there cost a look at PATH; those that are not are asked of apt-get once, or named', (t) => {
  const bin = refusingPrograms(t);
  const before = process.env['PATH'];
  t.after(() => {
    process.env['PATH'] = before;
  });
  const notes: string[] = [];
  const note = (line: string): void => void notes.push(line);
  process.env['PATH'] = bin;
  assert.deepEqual(ensurePrograms({ npm: 'npm', 'apt-get': 'apt' }, note), []);
  assert.deepEqual(notes, []);

  const missing = ensurePrograms({ 'no-such-program': 'no-such-package' }, note);
  assert.deepEqual(missing, ['no-such-package']);
  assert.match(notes.at(-1) ?? '', /please install (it|no-such-package)/);
});
