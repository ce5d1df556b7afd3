/** A real guest on a disk that runs full. */
// test:full: a fault of the host.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { VIRTUAL_MACHINE_INSTANCES } from '../../packages/kubevirt/src/kinds/kinds.ts';
import { NEVER } from '../../packages/runtime/src/http/seam.ts';
import { isRunning } from '../../packages/runtime/src/process/identity.ts';
import { run } from '../../packages/runtime/src/process/run.ts';
import { eventually } from '../testkit/eventually.ts';
import { type Board, collect, kernelSpec, NAMESPACE, startBoard } from './board.ts';

let board: Board;
before(async () => {
  board = await startBoard();
});
after(() => board.close());

const isRunningPhase = (vmi: { status?: { phase?: string } }): boolean => vmi.status?.phase === 'Running';
const remove = (name: string): Promise<void> =>
  board.client.delete(VIRTUAL_MACHINE_INSTANCES, { namespace: NAMESPACE, name });
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

// S-075: A guest whose node runs out of disk space is paused, reported, and goes on by itself.
test('a guest whose node runs out of disk space is paused, reported, and goes on by itself', async (context) => {
  const mountPoint = join(board.directory, 'node/vms');
  const mount = (size: string, ...more: string[]) =>
    run(['mount', '-t', 'tmpfs', '-o', [...more, `size=${size}`, 'mode=0700'].join(','), 'tmpfs', mountPoint], {
      signal: NEVER,
      timeoutMs: 5000,
    });
  await board.agent.stop({ keepVms: true });
  if (!(await mount('64m')).ok) {
    await board.restartAgent();
    return context.skip('needs the right to mount a tmpfs');
  }
  try {
    await board.restartAgent();
    await board.createVmi('full', {
      ...kernelSpec({ terminationGracePeriodSeconds: 0 }),
      volumes: [{ name: 'data', emptyDisk: { capacity: '200Mi' } }],
    });
    const vmi = await board.until('full', 'running', isRunningPhase);
    const socket = await board.connect('full/console?backlog=true');
    const seen = collect(socket);
    await seen.has('login:');
    socket.send(bytes('root\n'));
    await seen.has(':~# ');
    socket.send(bytes('dd if=/dev/urandom of=/dev/sda bs=1M count=90 oflag=direct; echo wrote-$((40+2))\n'));
    const full = await board.until(
      'full',
      'disk full',
      (v) => v.status?.conditions?.some((c) => c.type === 'DiskFull' && c.status === 'True') ?? false,
    );
    assert.equal(full.status?.phase, 'Running');
    assert.equal(full.status?.conditions?.find((c) => c.type === 'Paused')?.reason, 'PausedIOError');
    assert.ok((await mount('400m', 'remount')).ok);
    await seen.has('wrote-42');
    await board.until(
      'full',
      'goes on',
      (v) => !v.status?.conditions?.some((c) => c.type === 'DiskFull' || c.type === 'Paused'),
    );
    const { process: identity } = await board.record(vmi);
    await remove('full');
    await eventually('gone', async () => !(await isRunning(identity!)));
    await eventually('forgotten', async () => (await board.vmi('full').catch(() => undefined)) === undefined);
  } finally {
    await board.agent.stop({ keepVms: false });
    await run(['umount', '-l', mountPoint], { signal: NEVER, timeoutMs: 5000 });
  }
});
