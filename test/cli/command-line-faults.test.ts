/** The command line where it is started twice, ended by signals, or has no disk: each with control planes of its own. */
// test:full: faults and signals, a control plane for each.
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { findProcesses } from '../../packages/runtime/src/process/identity.ts';
import { eventually } from '../testkit/eventually.ts';
import { MAIN_FILE, SOURCES_MAIN } from '../testkit/program.ts';
import { holderOf, lines, openWorkspace, READY, refusal, runProgram } from './workspace.ts';

// S-082
test('of two ups at one moment one is ready; --keep-vms and --json say so', async (t) => {
  const at = openWorkspace(t);
  const outcomes = await Promise.all([at.up(), at.up()]);
  const [winner, loser] = outcomes[0]!.code === 0 ? outcomes : [outcomes[1]!, outcomes[0]!];
  assert.equal(winner!.code, 0, winner!.stderr);
  assert.match(refusal(loser!, 1), new RegExp(`\\bpid ${holderOf(at.data)}\\b`));
  const stopped = await at.run(['down', '--data-dir', at.data, '--keep-vms', '--json']);
  assert.deepEqual([JSON.parse(stopped.stdout).stopped, JSON.parse(stopped.stdout).keepVms], [true, true]);
  const json = await at.up('--json');
  const ready = JSON.parse(json.stdout);
  assert.deepEqual([ready.ready, ready.kubeconfig, ready.dataDir], [true, at.kubeconfig, at.data]);
  assert.equal(lines(json.stdout).length, 1);
});

// S-085
// S-301
// S-341: A killed process leaves what it compiled, so that the next start takes no longer than one after a proper end.
test('signals end a foreground up with exit code 0; a killed one leaves what it compiled and nothing in the way', async (t) => {
  const at = openWorkspace(t);
  const argv = ['up', '--data-dir', at.data, '--port', '0', '--nodes', '0'];
  const compiled = join(at.dir, 'compiled');
  const killed = at.start([...argv, '--no-merge-kubeconfig'], { NODE_COMPILE_CACHE: compiled });
  await killed.line(READY);
  // It writes just after its ready line: a build some 170 files, the sources more than 500.
  const files = MAIN_FILE === SOURCES_MAIN ? 500 : 150;
  await eventually('what it compiled', () => readdirSync(compiled, { recursive: true }).length >= files);
  killed.child.kill('SIGKILL');
  await killed.ended;
  assert.ok(existsSync(join(at.data, 'running.json')));
  assert.equal((await at.run(['status', '--data-dir', at.data])).code, 1);
  assert.equal((await at.run(['down', '--data-dir', at.data])).code, 0);
  // The last is what a terminal sends that is closed.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    const up = at.start(signal === 'SIGHUP' ? argv : [...argv, '--no-merge-kubeconfig']);
    assert.match(await up.line(/./), READY);
    up.child.kill(signal);
    const { code, stdout } = await up.ended;
    assert.deepEqual([code, lines(stdout).length], [0, 1], signal);
    assert.ok(!existsSync(join(at.data, 'running.json')));
  }
  assert.doesNotMatch(readFileSync(join(at.home, '.kube/config'), 'utf8'), /coracle/);
});

// S-301
test('Ctrl-C while up --detach waits ends what it has started', async (t) => {
  const at = openWorkspace(t);
  const first = at.start([
    'up',
    '--data-dir',
    at.data,
    '--port',
    '0',
    '--nodes',
    '0',
    '--detach',
    '--no-merge-kubeconfig',
  ]);
  const log = join(at.data, 'coracle.log');
  while (!existsSync(log)) await new Promise((wake) => setTimeout(wake, 2));
  first.child.kill('SIGINT');
  const { code, stdout, stderr } = await first.ended;
  assert.deepEqual([code, stdout, stderr], [1, '', 'error: interrupted\n']);
  const left = async () => (await findProcesses((argv) => argv.includes(at.data))).length;
  for (let looks = 0; (await left()) > 0 && looks < 400; looks++) await new Promise((wake) => setTimeout(wake, 25));
  assert.equal(await left(), 0);
});

// S-301
test('a disk that has no room for the log either is named', async (t) => {
  const at = openWorkspace(t);
  mkdirSync(at.data);
  const mounted = await runProgram('mount', ['-t', 'tmpfs', '-o', 'size=64k,mode=0700', 'tmpfs', at.data]);
  if (mounted.code !== 0) return t.skip('a tmpfs cannot be mounted here (root only)');
  try {
    assert.throws(() => writeFileSync(join(at.data, 'filling'), new Uint8Array(1024 * 1024)), /ENOSPC/);
    assert.match(refusal(await at.up(), 1), /^error: no space is left on the disk of \S+; free some/);
  } finally {
    await runProgram('umount', ['-l', at.data]);
  }
});

// S-1465: `down` stops a control plane whose disk is full.
test('a full disk keeps nobody from stopping', async (t) => {
  const at = openWorkspace(t);
  mkdirSync(at.data);
  const mounted = await runProgram('mount', ['-t', 'tmpfs', '-o', 'size=48m,mode=0700', 'tmpfs', at.data]);
  if (mounted.code !== 0) return t.skip('a tmpfs cannot be mounted here (root only)');
  try {
    assert.equal((await at.up()).code, 0);
    assert.throws(() => writeFileSync(join(at.data, 'filling'), new Uint8Array(64 * 1024 * 1024)), /ENOSPC/);
    const { code, stdout, stderr } = await at.run(['down', '--data-dir', at.data]);
    assert.deepEqual([code, stdout], [0, 'stopped\n'], stderr);
  } finally {
    await runProgram('umount', ['-l', at.data]);
  }
});
