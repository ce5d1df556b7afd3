/**
 * The disk of a node that really fills up: the node says DiskPressure, `status` and `up` name the directory and what is
 * missing, a guest that writes is paused before the API server has no room, deletes pass, and all goes on with space
 * again. Needs root, for a file system of its own.
 */
// test:full: a matrix of faults.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { openWorkspace, type Workspace } from '../cli/workspace.ts';
import { eventually } from '../testkit/eventually.ts';
import { importTinyGuest, tinyVm, whyNoGuests } from '../testkit/tiny-guest.ts';

const why = whyNoGuests();
const MIB = 1024 * 1024;
/** Its marks: DiskPressure below 38.4 MiB, guests are paused below 28.8, no new objects below 19.2, no writes below 4.8. */
const DISK_MIB = 384;

/** Mounts a file system at `path`; false after the test was skipped because none can be mounted. */
function mountSmallDisk(t: TestContext, path: string): boolean {
  mkdirSync(path, { recursive: true });
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK_MIB}m,mode=0700`, 'tmpfs', path], { stdio: 'ignore' });
    return true;
  } catch {
    t.skip('a tmpfs cannot be mounted here (root only)');
    return false;
  }
}

/** Fills the disk up to `spareMib`, beside what fills it already. */
function fill(disk: string, spareMib: number): void {
  const { bavail, bsize } = statfsSync(disk);
  try {
    writeFileSync(join(disk, `ballast-${spareMib}`), new Uint8Array(Math.max(0, bavail * bsize - spareMib * MIB)));
  } catch (error) {
    // Others write meanwhile: it is as full as it can be.
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
  }
}

/** Takes away what `fill` wrote. */
function free(disk: string): void {
  for (const name of readdirSync(disk)) if (name.startsWith('ballast-')) rmSync(join(disk, name));
}

/**
 * A machine that fills its empty disk once it is up, and says when it is done: so slowly that an agent whose look at the
 * disk comes seconds late still pauses it well before the API server has no room.
 */
const writer = () =>
  tinyVm('writer', ({ spec }) => {
    const { domain, volumes } = spec.template.spec!;
    const container = { image: 'localhost/coracle/tiny', kernelPath: '/boot/vmlinuz', initrdPath: '/boot/initrd' };
    domain.firmware = { kernelBoot: { kernelArgs: 'console=ttyS0', container } };
    domain.devices.disks = domain.devices.disks!.filter((disk) => disk.name !== 'root');
    domain.devices.disks.push({ name: 'data', disk: { bus: 'virtio' }, serial: 'data' });
    volumes?.splice(0, 1, { name: 'data', emptyDisk: { capacity: '64Mi' } });
    for (const volume of volumes ?? [])
      if (volume.cloudInitNoCloud)
        volume.cloudInitNoCloud.userData = [
          '#!/bin/sh',
          'd=/dev/$(grep -l data /sys/block/vd*/serial | cut -d/ -f4)',
          'for i in $(seq 0 47); do dd if=/dev/urandom of=$d bs=1M count=1 seek=$i 2>/dev/null; sync; sleep 0.5; done',
          'echo WRO""TE >/dev/console',
          '',
        ].join('\n');
  });

async function onFullDisk(at: Workspace): Promise<void> {
  const kubectl = async (...argv: string[]): Promise<string> => (await at.kubectl(argv)).stdout;
  const pressure = async (): Promise<string> =>
    kubectl('get', 'nodes', '-o', 'jsonpath={.items[0].status.conditions[?(@.type=="DiskPressure")]}');
  const shows = (what: string, test_: () => Promise<boolean>): Promise<true> =>
    eventually(what, async () => ((await test_()) ? true : undefined));
  const condition = (type: string): Promise<string> =>
    kubectl('get', 'vmi/writer', '-o', `jsonpath={.status.conditions[?(@.type=="${type}")].reason}`);

  const named = new RegExp(`\\d+ MiB left in ${at.data}: .*; free \\d+ MiB there`);
  await importTinyGuest(at.data);
  fill(at.data, 34);
  const up = await at.up('--nodes', '1');
  assert.equal(up.code, 0, up.stderr);
  assert.match(up.stderr, named, 'up says so');
  free(at.data);
  await shows('room', async () => /"status":"False"/.test(await pressure()));
  assert.doesNotMatch((await at.run(['status', '--data-dir', at.data])).stdout, /MiB left in/);

  const vm = await at.kubectl(['apply', '-f', '-'], JSON.stringify(writer()));
  assert.equal(vm.code, 0, vm.stderr);
  await shows(
    'a guest',
    async () => (await kubectl('get', 'vmi/writer', '-o', 'jsonpath={.status.phase}')) === 'Running',
  );

  fill(at.data, 35);
  await shows('DiskPressure', async () => /"status":"True"/.test(await pressure()));
  assert.match(await pressure(), /KubeletHasDiskPressure/);
  assert.ok((await pressure()).includes(at.data), 'it names the directory');
  await shows('a taint', async () =>
    /disk-pressure/.test(await kubectl('get', 'nodes', '-o', 'jsonpath={.items[0].spec.taints}')),
  );
  const status = await at.run(['status', '--data-dir', at.data]);
  assert.match(status.stdout, named);

  await shows('the guest to be paused', async () => (await condition('Paused')) === 'PausedIOError');
  assert.equal(await condition('DiskFull'), 'NoSpaceOnNode');
  const made = await at.kubectl(['create', 'configmap', 'made']);
  assert.equal(made.code, 0, `the API server has room of its own: ${made.stderr}`);

  fill(at.data, 12);
  const refused = await eventually('no new objects', async () => {
    const outcome = await at.kubectl(['create', 'configmap', `more-${Date.now()}`]);
    return outcome.code === 0 ? undefined : outcome.stderr;
  });
  assert.match(refused, new RegExp(`nearly full.*MiB more in ${at.data}`));
  assert.equal((await at.kubectl(['delete', 'configmap', 'made'])).code, 0, 'deletes pass');

  free(at.data);
  await shows('room again', async () => /"status":"False"/.test(await pressure()));
  await shows(
    'the guest to go on',
    async () => (await condition('DiskFull')) === '' && (await condition('Paused')) === '',
  );
  await shows('all that it wanted', async () =>
    /WROTE/.test(await kubectl('logs', '-l', 'vm.kubevirt.io/name=writer', '-c', 'guest-console-log', '--tail=-1')),
  );
}

// S-826
// S-802: A disk that really fills up is reported by the node (DiskPressure, a taint), by `up`, `status` and refusals,
//   each with the directory and what is missing; guests that write wait while the API server still takes objects,
//   deletes pass, and all goes on when there is space.
test('the disk of a node fills up: it is reported everywhere, guests wait, deletes pass, and all goes on with space', {
  timeout: 600_000,
  ...(why && { skip: why }),
}, async (t) => {
  const at = openWorkspace(t);
  if (!mountSmallDisk(t, at.data)) return;
  try {
    await onFullDisk(at);
  } finally {
    await at.run(['down', '--data-dir', at.data, '--force']);
    execFileSync('umount', ['-l', at.data]);
  }
});
