/** Volumes of the node's pool in real guests: snapshots while they write, expansion, crashes and restarts in the middle. */
import assert from 'node:assert/strict';
import { mkdir, readdir, readFile, readlink, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES } from '../../packages/apimachinery/src/types/resource-types.ts';
import type { SnapshotsMade } from '../../packages/cluster-rules/src/storage/pool-calls.ts';
import { filesOfDisk, openPool, type VolumeDisk } from '../../packages/node-agent/src/storage/pool.ts';
import type { PoolState } from '../../packages/node-agent/src/storage/pool-state.ts';
import { systemClock } from '../../packages/runtime/src/clock/clock.ts';
import { calledInProcess } from '../../packages/runtime/src/http/in-process-peer.ts';
import { type MessageSocket, NEVER } from '../../packages/runtime/src/http/seam.ts';
import { silentLogger } from '../../packages/runtime/src/log/log.ts';
import { isRunning } from '../../packages/runtime/src/process/identity.ts';
import { run } from '../../packages/runtime/src/process/run.ts';
import { eventually } from '../testkit/eventually.ts';
import { type Board, collect, kernelSpec, NAMESPACE, startBoard } from './board.ts';

const MIB = 1024 * 1024;
const uid = (n: number): string => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;
let board: Board;
before(async () => {
  board = await startBoard();
});
after(() => board?.close());

async function call(name: string, body: object): Promise<{ readonly status: number; readonly reply: unknown }> {
  const { status, body: bytes } = await calledInProcess(board.agent.handler)({
    method: 'POST',
    path: `/storage/v1/${name}`,
    query: '',
    headers: {},
    body: new TextEncoder().encode(JSON.stringify(body)),
    peer: { address: '' },
    signal: NEVER,
  });
  return { status, reply: JSON.parse(new TextDecoder().decode(bytes as Uint8Array)) };
}
async function done<T>(name: string, body: object): Promise<T> {
  const { status, reply } = await call(name, body);
  assert.equal(status, 200, `${name}: ${JSON.stringify(reply)}`);
  return reply as T;
}

/** A claim on a volume of the pool, as the provisioner makes them. */
async function claim(name: string, handle: string): Promise<void> {
  await done('createVolume', { handle, bytes: 16 * MIB, mode: 'Block', format: 'raw' });
  const { pool } = await done<{ pool: string }>('inspect', {});
  const spec = { accessModes: ['ReadWriteOnce'], volumeMode: 'Block' as const, storageClassName: '' };
  await board.client.create(PERSISTENT_VOLUMES, {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name },
    spec: {
      ...spec,
      capacity: { storage: '16Mi' },
      persistentVolumeReclaimPolicy: 'Retain',
      claimRef: { namespace: NAMESPACE, name },
      csi: { driver: 'local.coracle.dev', volumeHandle: handle, volumeAttributes: { pool, format: 'raw' } },
    },
  });
  await board.client.create(PERSISTENT_VOLUME_CLAIMS, {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name, namespace: NAMESPACE },
    spec: { ...spec, volumeName: name, resources: { requests: { storage: '16Mi' } } },
  });
}

async function startGuest(name: string, claims: readonly string[]): Promise<Shell> {
  const spec = kernelSpec({
    terminationGracePeriodSeconds: 0,
    volumes: claims.map((claimName) => ({ name: claimName, persistentVolumeClaim: { claimName } })),
  });
  const domain = spec['domain'] as { devices: object };
  const disks = claims.map((disk) => ({ name: disk, disk: { bus: 'virtio' } }));
  await board.createVmi(name, { ...spec, domain: { ...domain, devices: { ...domain.devices, disks } } });
  await board.until(name, 'running', ({ status }) => status?.phase === 'Running');
  return logIn(name);
}

interface Shell {
  send(line: string): void;
  /** Resolves to what the command printed. */
  ask(command: string): Promise<string>;
}
let asked = 0;
async function logIn(name: string): Promise<Shell> {
  const socket: MessageSocket = await board.connect(`${name}/console?backlog=true`);
  const seen = collect(socket);
  const send = (line: string): void => socket.send(new TextEncoder().encode(`${line}\n`));
  await seen.has('login:');
  send('root');
  await seen.has('# ');
  return {
    send,
    async ask(command) {
      const mark = `mark${++asked}`;
      send(`echo ${mark}-"be"gin; ${command}; echo ${mark}-"en"d`);
      await seen.has(`${mark}-end`);
      const text = seen.text().replaceAll('\r', '');
      return text.slice(text.lastIndexOf(`${mark}-begin`) + mark.length + 7, text.lastIndexOf(`${mark}-end`));
    },
  };
}

const graph = (disk: VolumeDisk): object => ({
  driver: disk.format,
  file: { driver: 'file', filename: disk.file },
  ...(disk.format === 'qcow2' && { backing: disk.backing ? graph(disk.backing) : null }),
});
/** What a guest would read of the volume. */
async function contentOf(disk: VolumeDisk, name: string): Promise<Buffer> {
  const file = join(board.directory, `${name}.raw`);
  const argv = ['qemu-img', 'convert', '-O', 'raw', `json:${JSON.stringify(graph(disk))}`, file];
  const result = await run(argv, { signal: NEVER, timeoutMs: 60_000 });
  assert.ok(result.ok, result.ok ? '' : result.message);
  return readFile(file);
}
/** The numbers at the start of each 512 bytes, up to the first that is missing. */
function numbersIn(content: Buffer): number[] {
  const found: number[] = [];
  for (let at = 1; at * 512 < content.length; at++) {
    const text = content.subarray(at * 512, at * 512 + 16).toString('latin1');
    const number = Number.parseInt(text, 10);
    if (!Number.isInteger(number)) break;
    found.push(number);
  }
  return found;
}

const stateFile = (): string => join(board.directory, 'node/claims/pool.json');
const poolState = async (): Promise<PoolState> => JSON.parse(await readFile(stateFile(), 'utf8')) as PoolState;
/** What the metadata said between the note of a switch and its end. */
async function asBeforeTheEnd(handle: string, snapshot: string): Promise<void> {
  const state = await poolState();
  const { [snapshot]: taken, ...snapshots } = state.snapshots;
  const volume = state.volumes[handle];
  assert.ok(taken && volume);
  const volumes = { ...state.volumes, [handle]: { ...volume, top: taken.layer, next: volume.top } };
  await writeFile(stateFile(), JSON.stringify({ ...state, snapshots, volumes }));
}

// S-546: Volumes of a guest that writes are snapshotted at one moment, enlarged where it sees it, merged, and found
//   again over restarts of the agent and crashes of QEMU in the middle, with what is newest.
test('volumes of a guest that writes are snapshotted at one moment, grown and found again over restarts and crashes', {
  timeout: 600_000,
}, async () => {
  const [A, B] = [uid(1), uid(2)];
  // The image of one is of a version that had no pool.
  const old = join(board.directory, 'node/claims', B);
  await mkdir(old);
  await writeFile(join(old, 'disk.img'), '');
  await truncate(join(old, 'disk.img'), 16 * MIB);
  await claim('a', A);
  await claim('b', B);
  const shell = await startGuest('writer', ['a', 'b']);
  const both = (n: number) => [
    { handle: uid(n), volume: A },
    { handle: uid(n + 1), volume: B },
  ];
  // Number after number, on one disk and then on the other, each on the disk before the next.
  await shell.ask(
    "(i=0; while [ ! -e /tmp/stop ]; do i=$((i+1)); for d in a b; do printf '%-512s' $i | dd of=/dev/vd$d bs=512 seek=$i conv=notrunc,fsync 2>/dev/null; done; echo $i > /tmp/i; done) & true",
  );
  const written = async (): Promise<number> => Number.parseInt(await shell.ask('cat /tmp/i'), 10);
  await eventually('the guest writes', async () => (await written()) > 5);
  const made = await done<SnapshotsMade>('createSnapshots', { snapshots: both(10) });
  assert.deepEqual(await done('createSnapshots', { snapshots: both(10) }), made);
  const then = await written();
  await eventually('the guest goes on', async () => (await written()) > then + 5);
  const vmi = await board.vmi('writer');
  const layers = (await poolState()).volumes[A]?.top ?? '';
  assert.ok(
    (await board.record(vmi)).files?.some((file) => file.endsWith(layers)),
    'its record follows',
  );
  assert.equal((await call('deleteVolume', { handle: A })).status, 409);
  const source = { kind: 'snapshot', handle: uid(10) };
  await done('createVolume', { handle: uid(41), bytes: 16 * MIB, mode: 'Block', format: 'raw', source });

  // The agent is gone while the switch is not known to have ended; the guest writes on to the new layer.
  await board.restartAgent(() => asBeforeTheEnd(A, uid(10)));
  await eventually('the volume is attached again', async () => (await poolState()).volumes[A]?.next === undefined);
  assert.equal((await poolState()).volumes[A]?.top, layers, 'what the guest writes to');
  const shellAgain = await logIn('writer');
  for (const n of [20, 21]) await done('createSnapshots', { snapshots: [{ handle: uid(n), volume: A }] });
  assert.equal((await done<{ bytes: number }>('expandVolume', { handle: A, bytes: 24 * MIB })).bytes, 24 * MIB);
  assert.match(await shellAgain.ask('sleep 1; cat /sys/block/vda/size'), /\b49152\b/);
  // Layers that nobody needs go while the guest writes.
  assert.equal(Object.keys((await poolState()).layers).length, 7);
  for (const n of [20, 21]) await done('deleteSnapshot', { handle: uid(n) });
  await eventually('merged', async () => Object.keys((await poolState()).layers).length === 6);
  const fds = `/proc/${(await board.record(vmi)).process?.pid}/fd`;
  await eventually('QEMU has closed what is gone', async () => {
    const open = await Promise.all((await readdir(fds)).map((fd) => readlink(join(fds, fd)).catch(() => '')));
    return !open.some((file) => file.endsWith('(deleted)') && file.includes('/layer-'));
  });
  // The record of a guest of such a version says nothing of volumes.
  await board.restartAgent(async () => {
    const { volumes: _, ...record } = await board.record(vmi);
    const path = join(board.directory, 'node/vms', record.vmiUid, 'record.json');
    await writeFile(path, JSON.stringify(record));
  });
  await eventually('the old image is attached', async () => {
    const asked = { snapshots: [{ handle: uid(25), volume: B }] };
    return (await call('createSnapshots', asked)).status === 200;
  });
  await board.restartAgent(async () => {
    const { volumes, ...record } = await board.record(vmi);
    assert.deepEqual(Object.keys(volumes ?? {}), ['b']);
    const path = join(board.directory, 'node/vms', record.vmiUid, 'record.json');
    await writeFile(path, JSON.stringify({ ...record, volumes: { ...volumes, a: { handle: A, files: [] } } }));
  });
  const shellLast = await logIn('writer');
  await shellLast.ask('touch /tmp/stop; sleep 1');
  const last = Number.parseInt(await shellLast.ask('cat /tmp/i'), 10);

  // QEMU dies, and then the agent, again before the switch is known to have ended: what is newest is kept.
  await eventually('attached', async () => {
    const asked = { snapshots: [{ handle: uid(30), volume: A }] };
    return (await call('createSnapshots', asked)).status === 200;
  });
  await shellLast.ask(`printf '%-512s' newest | dd of=/dev/vda bs=512 conv=notrunc,fsync`);
  const qemu = (await board.record(vmi)).process!;
  await board.agent.stop({ keepVms: true });
  process.kill(qemu.pid, 'SIGKILL');
  await eventually('QEMU is gone, and its locks', async () => !(await isRunning(qemu)));
  await asBeforeTheEnd(A, uid(30));
  const pool = await openPool({
    directory: join(board.directory, 'node/claims'),
    clock: systemClock,
    log: silentLogger,
    signal: NEVER,
  });
  try {
    const { disk } = await pool.reserve(A, { vmi: uid(99), place: 'x', access: 'write' });
    assert.equal(disk.size, 24 * MIB);
    const now = await contentOf(disk, 'now');
    assert.match(now.subarray(0, 16).toString(), /^newest/);
    assert.ok(numbersIn(now).length >= last, `${numbersIn(now).length} of ${last}`);
    // The snapshots of before: whole, and of one moment; a volume made of one shares its layers.
    await pool.createVolume({
      handle: uid(40),
      bytes: 16 * MIB,
      mode: 'Block',
      format: 'raw',
      source: { kind: 'snapshot', handle: uid(11) },
    });
    assert.equal(filesOfDisk(pool.diskOf(uid(40))).length, 2);
    const second = numbersIn(await contentOf(pool.diskOf(uid(40)), 'second'));
    assert.ok(second.length > 5 && second.length <= then + 1);
    assert.deepEqual(
      second,
      Array.from({ length: second.length }, (_, i) => i + 1),
    );
    const first = numbersIn(await contentOf(pool.diskOf(uid(41)), 'first'));
    assert.ok([0, 1].includes(first.length - second.length), `${first.length} and ${second.length}`);
  } finally {
    await pool.close();
  }
});
