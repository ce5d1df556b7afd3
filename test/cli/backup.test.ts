/** Backups on the command line: of a control plane that runs, killed at every step, and restored elsewhere. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { makeBackedUp } from '../testkit/backed-up.ts';
import { openWorkspace, root, runProgram } from './workspace.ts';

// S-651
test('a running control plane is backed up, and goes on elsewhere with a history of its own', async (t) => {
  const { dir, data, run, up, kubectl, home } = openWorkspace(t);
  await up();
  await kubectl(['create', 'configmap', 'kept', '--from-literal=a=b']);
  const backup = join(dir, 'backup');
  const made = await run(['backup', 'create', backup, '--data-dir', data, '--json']);
  assert.deepEqual([made.code, made.stderr], [0, '']);
  const { revision, keys } = JSON.parse(made.stdout) as { revision: number; keys: boolean };
  assert.equal(keys, true);
  assert.equal(statSync(join(backup, 'data/pki/ca.key')).mode & 0o777, 0o600);
  await kubectl(['create', 'configmap', 'after']);
  const verified = await run(['backup', 'verify', backup]);
  assert.match(verified.stdout, /revision \d+, 0 volumes, with keys; all digests fit/);
  assert.equal(verified.code, 0);

  const inUse = await run(['backup', 'restore', backup, '--data-dir', data]);
  assert.deepEqual([inUse.code, inUse.stdout], [1, '']);
  assert.match(
    inUse.stderr,
    /^error: .* is not empty; a backup is restored into a new or an empty directory only .*\n$/,
  );

  const other = join(dir, 'other');
  const restored = await run(['backup', 'restore', backup, '--data-dir', other]);
  assert.equal(restored.code, 0, restored.stderr);
  assert.match(restored.stderr, /do not run it beside the original/);
  const flags = ['--port', '0', '--nodes', '0', '--detach', '--no-merge-kubeconfig'];
  assert.equal((await run(['up', '--data-dir', other, ...flags])).code, 0);
  const ask = (argv: string[]) =>
    runProgram('kubectl', argv, { PATH: process.env['PATH']!, HOME: home, KUBECONFIG: join(other, 'kubeconfig') });
  assert.match((await ask(['get', 'configmap', '-o', 'name'])).stdout, /configmap\/kept/);
  assert.doesNotMatch((await ask(['get', 'configmap', '-o', 'name'])).stdout, /after/);
  // Who comes with a revision of the original gets 410 and lists anew, also one from after the backup.
  for (const old of [revision, revision + 5]) {
    const { stdout, stderr } = await ask([
      'get',
      '--raw',
      `/api/v1/configmaps?watch=true&timeoutSeconds=1&resourceVersion=${old}`,
    ]);
    assert.match(stdout + stderr, /too old resource version|Expired|410/);
  }
  // The same CA: a kubeconfig of the original is good here.
  const of = (path: string): string => /certificate-authority-data: (\S+)/.exec(readFileSync(path, 'utf8'))![1]!;
  assert.equal(of(join(other, 'kubeconfig')), of(join(data, 'kubeconfig')));
  for (const at of [other, data]) await run(['down', '--data-dir', at]);

  // And without a process.
  const resting = await run([
    'backup',
    'create',
    join(dir, 'resting'),
    '--data-dir',
    data,
    '--base',
    backup,
    '--without-keys',
  ]);
  assert.equal(resting.code, 0, resting.stderr);
  assert.match(resting.stdout, /without keys/);
});

test('wrong calls of backup are reported in one line', async (t) => {
  const { dir, run } = openWorkspace(t);
  for (const [argv, code, line] of [
    [['backup'], 1, /backup takes: create DIR, verify DIR, or restore DIR/],
    [['backup', 'make', 'x'], 1, /backup takes/],
    [['backup', 'verify', dir, '--base', 'x'], 1, /--base and --without-keys are for create/],
    [['backup', 'verify', dir], 1, /is not a backup: it has no manifest.json/],
    [['backup', 'verify', join(dir, 'none')], 1, /none is not a directory/],
    [['backup', 'create', join(dir, 'b'), '--data-dir', join(dir, 'none')], 1, /holds no state of a control plane/],
    [['backup', 'create', dir, '--data-dir', join(dir, 'none')], 1, /holds no state/],
  ] as const) {
    const said = await run(argv);
    assert.equal(said.code, code, argv.join(' '));
    assert.match(said.stderr, line);
    assert.match(said.stderr, /^error: [^\n]+\n$/);
  }
  assert.equal(existsSync(join(dir, 'b')), false);
});

// S-657
test('killed before the last step, create and restore leave nothing, and the next one finds no trace', async (t) => {
  const { root: at, create } = await makeBackedUp(t);
  await create('good');
  for (const verb of ['create', 'restore']) {
    const to = join(at, `of-${verb}`);
    const script = join(root, 'test/testkit/kill-backup.ts');
    const killed = await runProgram(process.execPath, [script, verb, at, 'before rename', to]);
    assert.equal(killed.code, null);
    assert.equal(existsSync(to), false);
  }
  await create('of-create');
  assert.ok(existsSync(join(at, 'of-create/manifest.json')));
  assert.deepEqual(
    readdirSync(at).filter((name) => name.startsWith('.of-create')),
    [],
  );
});
