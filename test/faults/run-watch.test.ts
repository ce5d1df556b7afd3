/** The watch of the chaos test sees what it is there for: two QEMUs of one instance that run at once. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { eventually } from '../testkit/eventually.ts';
import { whyNoGuests } from '../testkit/tiny-guest.ts';
import { watchRuns } from './run-watch.ts';

const why = whyNoGuests();
const UID = '00000000-0000-4000-8000-000000000001';

// S-238
test('watchRuns() tells of a guest that runs twice, and not of one that stands by', {
  timeout: 600_000,
  ...(why && { skip: why }),
}, async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'coracle-watch-'));
  const children: ChildProcess[] = [];
  const watch = watchRuns(dir);
  t.after(() => {
    watch.stop();
    for (const child of children) child.kill('SIGKILL');
    rmSync(dir, { recursive: true, force: true });
  });
  const start = (node: string): string => {
    const cwd = join(dir, node, 'vms', UID);
    mkdirSync(cwd, { recursive: true });
    const monitors = ['probe.sock', 'qmp.sock'].flatMap((name) => ['-qmp', `unix:${name},server=on,wait=off`]);
    const argv = ['-machine', 'none', '-nodefaults', '-display', 'none', '-S', '-pidfile', join(cwd, 'qemu.pid')];
    children.push(spawn('qemu-system-x86_64', [...argv, ...monitors], { cwd, stdio: 'ignore' }));
    return join(cwd, 'qmp.sock');
  };
  const say = (path: string, command: string): void => {
    const socket = connect(path, () => socket.write(`{"execute":"qmp_capabilities"}\n{"execute":"${command}"}\n`));
    socket.on('error', () => {});
    socket.on('data', (chunk: Buffer) => {
      if (chunk.toString().includes('"return"')) setTimeout(() => socket.destroy(), 200);
    });
  };
  const [one, two] = [start('one'), start('two')];
  await eventually('both', async () => (watch.live().length === 2 ? true : undefined));
  assert.equal(watch.owner(UID), undefined);
  say(one, 'cont');
  await eventually('the first to run', async () => (watch.owner(UID)?.node === 'one' ? true : undefined));
  assert.deepEqual(watch.violations(), []);
  say(two, 'cont');
  const [reported] = await eventually('the word', async () =>
    watch.violations().length > 0 ? watch.violations() : undefined,
  );
  assert.match(reported ?? '', new RegExp(`^two QEMUs of ${UID} ran at once`));
});
