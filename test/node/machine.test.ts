import assert from 'node:assert/strict';
import { mkdir } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { CONFIG_MAPS, EVENTS } from '../../src/api/kinds/builtin/resource-types.ts';
import { VIRTUAL_MACHINE_INSTANCES } from '../../src/api/kinds/kubevirt/kinds.ts';
import { systemClock } from '../../src/base/clock/clock.ts';
import { NEVER } from '../../src/base/http/seam.ts';
import { isRunning } from '../../src/base/process/identity.ts';
import { run } from '../../src/base/process/run.ts';
import { claimAddress } from '../../src/node/network/address-pool.ts';
import { runsGuestCode } from '../../src/node/qemu/kvm-probe.ts';
import { type Board, collect, eventually, kernelSpec, NAMESPACE, startBoard } from './board.ts';

let board: Board;
before(async () => {
  board = await startBoard();
});
after(() => board.close());

const isRunningPhase = (vmi: { status?: { phase?: string } }): boolean => vmi.status?.phase === 'Running';
const remove = (name: string): Promise<void> =>
  board.client.delete(VIRTUAL_MACHINE_INSTANCES, { namespace: NAMESPACE, name });
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

/** Logs in on the console and runs one command; returns its output. */
async function inGuest(name: string, command: string): Promise<string> {
  const socket = await board.connect(`${name}/console`);
  const seen = collect(socket);
  await seen.has('login:');
  socket.send(bytes('root\n'));
  await seen.has(':~# ');
  const mark = `end-${systemClock.monotonic()}`;
  socket.send(bytes(`${command}; echo ${mark.replace('-', "-''")}\n`));
  await seen.has(mark);
  const text = seen.text();
  socket.send(bytes('exit\n'));
  socket.close();
  return text;
}

test('the probe runs guest code under TCG, and says so only when it did', async () => {
  const directory = join(board.directory, 'probe');
  await mkdir(directory);
  assert.equal(
    (await runsGuestCode('qemu-system-x86_64', 'tcg', { directory, signal: NEVER, limitMs: 10_000 })).works,
    true,
  );
  assert.equal((await runsGuestCode('false', 'tcg', { directory, signal: NEVER })).works, false);
});

test('disks on every bus, cloud-init, a ConfigMap, a guest agent and a soft reboot', async () => {
  await board.client.create(CONFIG_MAPS, {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'settings', namespace: NAMESPACE },
    data: { 'app.conf': 'colour=blue' },
  } as never);
  await board.createVmi('disks', {
    hostname: 'cloudy',
    terminationGracePeriodSeconds: 0,
    domain: {
      devices: {
        disks: [
          { name: 'root', disk: { bus: 'virtio' } },
          { name: 'seed', cdrom: { bus: 'sata' } },
          { name: 'scratch', disk: { bus: 'scsi' }, serial: 'a.b+c', cache: 'none' },
          { name: 'plain', disk: { bus: 'sata' } },
          { name: 'config', disk: { bus: 'virtio' } },
        ],
      },
      memory: { guest: '160Mi' },
    },
    volumes: [
      { name: 'root', containerDisk: { image: 'localhost/tiny' } },
      { name: 'seed', cloudInitNoCloud: { userData: '#!/bin/sh\necho "from user data" > /dev/console\n' } },
      { name: 'scratch', emptyDisk: { capacity: '64Mi' } },
      { name: 'plain', emptyDisk: { capacity: '32Mi' } },
      { name: 'config', configMap: { name: 'settings', volumeLabel: 'CFG' } },
    ],
  });
  const vmi = await board.until('disks', 'running', isRunningPhase);
  assert.deepEqual(
    vmi.status?.volumeStatus?.map((v) => [v.name, v.target]),
    [
      ['config', 'vdb'],
      ['plain', 'sdc'],
      ['root', 'vda'],
      ['scratch', 'sdb'],
      ['seed', 'sda'],
    ],
  );
  const console = collect(await board.connect('disks/console'));
  await console.has('from user data');
  await console.has('cloudy login:');
  await board.until(
    'disks',
    'agent',
    (v) => v.status?.conditions?.some((c) => c.type === 'AgentConnected' && c.status === 'True') ?? false,
  );
  const output = await inGuest(
    'disks',
    'cat /proc/partitions; mkdir /m; mount -t iso9660 /dev/vdb /m; cat /m/app.conf',
  );
  assert.match(output, /colour=blue/);
  for (const size of [65536, 32768]) assert.match(output, new RegExp(`\\b${size}\\b`));

  const { process: identity } = await board.record(vmi);
  assert.equal(await board.put('disks/softreboot'), 200);
  await eventually('second banner', () => (console.text().match(/Coracle tiny guest/g) ?? []).length === 2);
  assert.ok(identity && (await isRunning(identity)));
  await remove('disks');
  await eventually('gone', async () => !(await isRunning(identity!)));
});

test('a port that is taken is an event and a condition; the guest runs', async () => {
  const created = await board.createVmi('ports', {
    ...kernelSpec({ terminationGracePeriodSeconds: 0 }),
    startStrategy: 'Paused',
  });
  const address = await claimAddress(join(board.directory, 'node/addresses'), created.metadata.uid ?? '');
  const squatter = createServer();
  await new Promise<void>((done, fail) => squatter.once('error', fail).listen(8080, address, done)).catch(() => {});
  const vmi = await board.until('ports', 'running', isRunningPhase);
  // startStrategy Paused: it waits for an unpause.
  assert.ok(vmi.status?.conditions?.some((c) => c.type === 'Paused'));
  const condition = vmi.status?.conditions?.find((c) => c.type === 'PortsForwarded');
  assert.equal(condition?.status, 'False');
  assert.match(condition?.message ?? '', /port 8080 .* taken/);
  await eventually('event', async () =>
    (await board.client.list(EVENTS, { namespace: NAMESPACE })).items.some((e) => e.reason === 'PortNotForwarded'),
  );
  assert.equal(await board.put('ports/unpause'), 200);
  await new Promise<void>((done) => squatter.close(() => done()));
  await remove('ports');
  await eventually('gone', async () => (await board.vmi('ports').catch(() => undefined)) === undefined);
});

test('a guest whose node runs out of disk space is paused, told of, and goes on by itself', async (context) => {
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
    const socket = await board.connect('full/console');
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
