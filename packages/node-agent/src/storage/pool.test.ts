import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { cpSync, existsSync } from 'node:fs';
import { mkdir, mkdtemp, open, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { systemClock } from '../../../runtime/src/clock/clock.ts';
import { silentLogger } from '../../../runtime/src/log/log.ts';
import { run } from '../../../runtime/src/process/run.ts';
import { filesOfDisk, openPool, type Pool, type PoolOptions, type VolumeDisk } from './pool.ts';
import { PoolError } from './pool-error.ts';

const MIB = 1024 * 1024;
const uid = (n: number): string => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;
const [VOLUME, OTHER, SNAPSHOT, CLONE] = [uid(1), uid(2), uid(0x51), uid(3)];
const raw = (n: number, megabytes = 4) =>
  ({ handle: uid(n), bytes: megabytes * MIB, mode: 'Filesystem', format: 'raw' }) as const;

async function poolIn(t: TestContext, options: Partial<PoolOptions> = {}): Promise<Pool> {
  const directory = options.directory ?? (await mkdtemp(join(tmpdir(), 'coracle-pool-')));
  const signal = new AbortController().signal;
  const pool = await openPool({ directory, clock: systemClock, log: silentLogger, signal, ...options });
  t.after(async () => {
    await pool.close();
    await rm(directory, { recursive: true, force: true });
  });
  return pool;
}

const graph = (disk: VolumeDisk): object => ({
  driver: disk.format,
  file: { driver: 'file', filename: disk.file },
  ...(disk.format === 'qcow2' && { backing: disk.backing ? graph(disk.backing) : null }),
});

async function io(disk: VolumeDisk, ...commands: readonly string[]): Promise<void> {
  const argv = ['qemu-io', ...commands.flatMap((command) => ['-c', command]), `json:${JSON.stringify(graph(disk))}`];
  const signal = new AbortController().signal;
  const result = await run(argv, { signal, timeoutMs: 10_000 });
  const said = new TextDecoder().decode(result.stdout);
  assert.ok(result.ok && !/failed|error/i.test(said), `${said}${result.stderr}`);
}
const write = (disk: VolumeDisk, at: number, pattern: number): Promise<void> =>
  io(disk, `write -q -P ${pattern} ${at}M 1M`, 'flush');
/** Fails when there is anything else than the pattern in the megabyte. */
const holds = (disk: VolumeDisk, at: number, pattern: number): Promise<void> =>
  io(disk, `read -q -P ${pattern} ${at}M 1M`);

const refused = (reason: string) => (error: unknown) => error instanceof PoolError && error.reason === reason;
const filesIn = async (pool: Pool): Promise<string[]> =>
  (await readdir(pool.directory, { recursive: true })).filter((name) => /\.(raw|qcow2|img)$/.test(name)).sort();

/** Bytes on the disk of all images. */
const usedIn = async (pool: Pool): Promise<number> => {
  const sizes = (await filesIn(pool)).map(async (name) => (await stat(join(pool.directory, name))).blocks * 512);
  return (await Promise.all(sizes)).reduce((sum, bytes) => sum + bytes, 0);
};

// S-541: A volume, its snapshots and what is made of them share layers; each keeps its content and size whatever
//   becomes of the others, and space that nobody needs is free again.
test('a volume, its snapshot and what is made of them share layers, and each is whatever becomes of the others', async (t) => {
  const pool = await poolIn(t);
  assert.deepEqual(await pool.createVolume(raw(1)), { handle: VOLUME, bytes: 4 * MIB, format: 'raw' });
  assert.equal((await stat(pool.diskOf(VOLUME).file)).mode & 0o777, 0o600);
  await write(pool.diskOf(VOLUME), 0, 1);
  await writeFile(join(await pool.filesOf(VOLUME), 'state'), 'first');
  const taken = await pool.createSnapshots({ snapshots: [{ handle: SNAPSHOT, volume: VOLUME }] });
  assert.deepEqual(await pool.createSnapshots({ snapshots: [{ handle: SNAPSHOT, volume: VOLUME }] }), taken);
  await write(pool.diskOf(VOLUME), 0, 2);
  await writeFile(join(await pool.filesOf(VOLUME), 'state'), 'second');
  await holds(pool.diskOfSnapshot(SNAPSHOT), 0, 1);

  const source = { kind: 'snapshot', handle: SNAPSHOT } as const;
  await assert.rejects(pool.createVolume({ ...raw(3, 2), source }), refused('Invalid'), 'smaller than its source');
  assert.equal((await pool.createVolume({ ...raw(3, 6), source })).format, 'qcow2');
  await holds(pool.diskOf(CLONE), 0, 1);
  await holds(pool.diskOf(CLONE), 5, 0);
  assert.equal(await readFile(join(await pool.filesOf(CLONE), 'state'), 'utf8'), 'first');
  assert.equal(pool.diskOf(CLONE).backing?.file, pool.diskOf(VOLUME).backing?.file, 'nothing was copied');

  await pool.createVolume({ ...raw(2), source: { kind: 'volume', handle: VOLUME } });
  await write(pool.diskOf(VOLUME), 0, 3);
  await holds(pool.diskOf(OTHER), 0, 2);
  assert.equal((await pool.expandVolume({ handle: OTHER, bytes: 8 * MIB })).bytes, 8 * MIB);
  await holds(pool.diskOf(OTHER), 7, 0);

  await pool.deleteVolume({ handle: VOLUME });
  await pool.deleteVolume({ handle: VOLUME });
  await pool.deleteSnapshot({ handle: SNAPSHOT });
  await pool.settled();
  await holds(pool.diskOf(CLONE), 0, 1);
  await holds(pool.diskOf(OTHER), 0, 2);
  await write(pool.diskOf(CLONE), 1, 9);
  await holds(pool.diskOf(OTHER), 1, 0);
  await pool.deleteVolume({ handle: CLONE });
  await pool.settled();
  assert.equal(filesOfDisk(pool.diskOf(OTHER)).length, 1, 'what is alone is one file again');
  await write(pool.diskOf(OTHER), 7, 7);
  await holds(pool.diskOf(OTHER), 0, 2);
  await pool.deleteVolume({ handle: OTHER });
  assert.deepEqual(await readdir(pool.directory), ['pool.json'], 'all space is free again');
});

// S-542: Snapshots of several volumes are taken all or none, at one point in time; a call that is repeated has the same
//   answer.
test('snapshots of several volumes are taken all or none', async (t) => {
  const pool = await poolIn(t);
  await pool.createVolume(raw(1));
  const both = [
    { handle: SNAPSHOT, volume: VOLUME },
    { handle: uid(0x52), volume: OTHER },
  ];
  await assert.rejects(pool.createSnapshots({ snapshots: both }), refused('NotFound'));
  assert.deepEqual((await pool.inspect()).snapshots, []);
  await pool.createVolume({ ...raw(2), format: 'qcow2', mode: 'Block' });
  await assert.rejects(pool.filesOf(OTHER), refused('Invalid'));
  const made = await pool.createSnapshots({ snapshots: both });
  assert.equal(made.snapshots[0]?.createdAt, made.snapshots[1]?.createdAt);
  const third = { handle: uid(0x53), volume: VOLUME };
  await assert.rejects(pool.createSnapshots({ snapshots: [...both, third] }), refused('Invalid'));
  assert.equal((await pool.inspect()).snapshots.length, 2);
  await assert.rejects(pool.createVolume({ ...raw(1), handle: '../x' }), refused('Invalid'));
});

// S-845: A volume that is made of a snapshot or of another volume copies none of its content.
test('what is made of a snapshot or of a volume copies none of its content', async (t) => {
  const pool = await poolIn(t);
  await pool.createVolume(raw(1, 64));
  for (const at of [0, 20, 40]) await io(pool.diskOf(VOLUME), `write -q -P 7 ${at}M 10M`, 'flush');
  await pool.createSnapshots({ snapshots: [{ handle: SNAPSHOT, volume: VOLUME }] });
  const before = await usedIn(pool);
  assert.ok(before > 30 * MIB);
  await pool.createVolume({ ...raw(3, 64), source: { kind: 'snapshot', handle: SNAPSHOT } });
  await pool.createVolume({ ...raw(2, 128), source: { kind: 'volume', handle: VOLUME } });
  for (const handle of [CLONE, OTHER]) await io(pool.diskOf(handle), 'read -q -P 7 40M 10M');
  const copied = (await usedIn(pool)) - before;
  assert.ok(copied < 2 * MIB, `${copied} bytes`);
});

// S-842: A volume that a process which is not looked after writes to is neither snapshotted nor enlarged, whatever its
//   format.
for (const format of ['raw', 'qcow2'] as const)
  test(`a ${format} volume that an unknown process writes to is not snapshotted, and nothing is left of the attempt`, async (t) => {
    const pool = await poolIn(t);
    await pool.createVolume({ ...raw(1), format });
    const disk = pool.diskOf(VOLUME);
    const before = await filesIn(pool);
    const holder = spawn('qemu-io', [`json:${JSON.stringify(graph(disk))}`]);
    t.after(() => holder.kill());
    const ended = new Promise((done) => holder.once('exit', done));
    holder.stdin.write('write -q 0 64k\nlength\n');
    await new Promise((said) => holder.stdout.once('data', said));
    const snapshots = [{ handle: SNAPSHOT, volume: VOLUME }];
    await assert.rejects(pool.createSnapshots({ snapshots }), refused('InUse'));
    assert.deepEqual(await filesIn(pool), before);
    holder.stdin.end('quit\n');
    await ended;
    await pool.createSnapshots({ snapshots });
  });

// S-545: One guest has a volume at a time, unless all only read it or share it; while it starts or moves its layers
//   stay as they are, and calls say so.
test('who has a volume decides what may be done with it', async (t) => {
  const pool = await poolIn(t);
  await pool.createVolume(raw(1));
  const guest = { vmi: uid(11), place: 'a', access: 'write' } as const;
  const { disk, release } = await pool.reserve(VOLUME, guest);
  assert.equal(disk.size, 4 * MIB);
  await pool.reserve(VOLUME, guest);
  const snapshots = [{ handle: SNAPSHOT, volume: VOLUME }];
  await assert.rejects(pool.reserve(VOLUME, { ...guest, vmi: uid(12) }), refused('InUse'));
  await assert.rejects(pool.deleteVolume({ handle: VOLUME }), refused('InUse'));
  await assert.rejects(pool.createSnapshots({ snapshots }), refused('Conflict'), 'it starts');
  await pool.reserve(VOLUME, { ...guest, place: 'b' });
  await assert.rejects(pool.createSnapshots({ snapshots }), /moves to another node/);
  pool.releaseAll({ ...guest, place: 'b' });
  release();
  const readers = [12, 13].map((n) => ({ vmi: uid(n), place: 'a', access: 'read' }) as const);
  for (const reader of readers) await pool.reserve(VOLUME, reader);
  await assert.rejects(pool.reserve(VOLUME, guest), refused('InUse'));
  await pool.createSnapshots({ snapshots });
  await assert.rejects(pool.reserve(uid(7), guest), refused('NotFound'));
});

// S-541
test('many snapshots keep a bounded chain, and merged layers keep what each snapshot holds', async (t) => {
  const pool = await poolIn(t, { maxLayers: 4 });
  await pool.createVolume(raw(1, 16));
  const snapshot = (n: number): string => uid(0x60 + n);
  for (let n = 1; n <= 8; n++) {
    await write(pool.diskOf(VOLUME), n, n);
    await write(pool.diskOf(VOLUME), 0, n);
    await pool.createSnapshots({ snapshots: [{ handle: snapshot(n), volume: VOLUME }] });
    await pool.settled();
    assert.ok(filesOfDisk(pool.diskOf(VOLUME)).length <= 4, `snapshot ${n}`);
  }
  const check = async (disk: VolumeDisk, last: number): Promise<void> => {
    await holds(disk, 0, last);
    for (let n = 1; n <= 8; n++) await holds(disk, n, n <= last ? n : 0);
  };
  for (const n of [2, 1, 5, 7]) await pool.deleteSnapshot({ handle: snapshot(n) });
  await pool.settled();
  for (const n of [3, 4, 6, 8]) await check(pool.diskOfSnapshot(snapshot(n)), n);
  for (const n of [3, 4, 6, 8]) await pool.deleteSnapshot({ handle: snapshot(n) });
  await pool.settled();
  await check(pool.diskOf(VOLUME), 8);
  assert.equal((await filesIn(pool)).length, 1);
});

// S-544: Files of claims that earlier versions made are volumes as they are; damaged metadata touches nothing.
test('files of older versions are volumes as they are', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'coracle-pool-'));
  const old = async (handle: string): Promise<void> => {
    await mkdir(join(directory, handle));
    await writeFile(join(directory, handle, 'claim.json'), '{"version":1,"storageClass":""}');
    const file = await open(join(directory, handle, 'disk.img'), 'w', 0o600);
    await file.truncate(2 * MIB);
    await file.write('kept');
    await file.close();
  };
  await old(VOLUME);
  const pool = await poolIn(t, { directory });
  assert.equal(pool.diskOf(VOLUME).file, join(directory, VOLUME, 'disk.img'));
  // One that an agent of an older version makes later, as the provisioner asks for it.
  await old(OTHER);
  assert.deepEqual(await pool.createVolume(raw(2, 3)), { handle: OTHER, bytes: 3 * MIB, format: 'raw' });
  assert.match(await readFile(pool.diskOf(OTHER).file, 'latin1'), /^kept/);
  assert.ok(!existsSync(join(directory, OTHER, 'claim.json')), 'the provisioner says when it goes');
  const { id } = pool;
  await pool.close();
  assert.equal((await poolIn(t, { directory })).id, id);
  await rm(join(directory, 'pool.json'));
  await writeFile(join(directory, 'pool.json'), '{"version":1,"id"');
  await assert.rejects(poolIn(t, { directory }), /damaged/);
  await writeFile(join(directory, VOLUME, 'layer-0123456789ab.raw'), 'x');
  await rm(join(directory, 'pool.json'));
  await assert.rejects(poolIn(t, { directory }), /pool\.json is missing/);
  assert.ok(existsSync(join(directory, VOLUME, 'disk.img')));
});

// S-543: A crash between any two steps of a call to the pool leaves the old state or the new, and no file over.
test('a crash between any two steps leaves the old or the new, and nothing over', async (t) => {
  const copies = await mkdtemp(join(tmpdir(), 'coracle-crash-'));
  t.after(() => rm(copies, { recursive: true, force: true }));
  const directory = await mkdtemp(join(tmpdir(), 'coracle-pool-'));
  let stage = '';
  const crashes: { readonly stage: string; readonly step: string; readonly at: string }[] = [];
  const pool = await poolIn(t, {
    directory,
    onStep: (step) => {
      const at = join(copies, `${crashes.length}`);
      cpSync(directory, at, { recursive: true });
      crashes.push({ stage, step, at });
    },
  });
  const during = async <T>(name: string, work: () => Promise<T>): Promise<void> => {
    stage = name;
    await work();
    await pool.settled();
  };
  await during('create', () => pool.createVolume(raw(1)));
  stage = '';
  await write(pool.diskOf(VOLUME), 0, 1);
  await writeFile(join(await pool.filesOf(VOLUME), 'state'), 'kept');
  await during('snapshot', () => pool.createSnapshots({ snapshots: [{ handle: SNAPSHOT, volume: VOLUME }] }));
  await write(pool.diskOf(VOLUME), 1, 2);
  await during('restore', () => pool.createVolume({ ...raw(3), source: { kind: 'snapshot', handle: SNAPSHOT } }));
  await during('clone', () => pool.createVolume({ ...raw(2), source: { kind: 'volume', handle: VOLUME } }));
  await during('expand', () => pool.expandVolume({ handle: VOLUME, bytes: 8 * MIB }));
  await during('delete', () => pool.deleteVolume({ handle: CLONE }));
  await during('delete snapshot', () => pool.deleteSnapshot({ handle: SNAPSHOT }));
  await during('delete other', () => pool.deleteVolume({ handle: OTHER }));
  assert.ok(crashes.length >= 25, `${crashes.length} steps`);
  assert.ok(crashes.some(({ step }) => step === 'layers merged'));
  for (const { stage: at, step, at: copy } of crashes) {
    const again = await poolIn(t, { directory: copy });
    await again.settled();
    const held = await again.inspect();
    const text = `${at}: ${step}`;
    const has = (handle: string): boolean => held.volumes.some((volume) => volume.handle === handle);
    if (at !== 'create') {
      await holds(again.diskOf(VOLUME), 0, 1);
      if (at !== 'snapshot') await holds(again.diskOf(VOLUME), 1, 2);
      assert.equal(await readFile(join(await again.filesOf(VOLUME), 'state'), 'utf8'), 'kept', text);
    }
    if (held.snapshots.length > 0) await holds(again.diskOfSnapshot(SNAPSHOT), 1, 0);
    else assert.ok(['create', 'snapshot', 'delete snapshot', 'delete other'].includes(at), text);
    if (has(CLONE)) await holds(again.diskOf(CLONE), 0, 1);
    if (has(OTHER)) await holds(again.diskOf(OTHER), 1, 2);
    const layers = new Set(
      [
        ...held.volumes.map(({ handle }) => again.diskOf(handle)),
        ...held.snapshots.map(({ handle }) => again.diskOfSnapshot(handle)),
      ].flatMap(filesOfDisk),
    );
    assert.deepEqual(await filesIn(again), [...layers].map((file) => file.slice(copy.length + 1)).sort(), text);
    // Whoever asked asks again.
    if (at === 'snapshot') await again.createSnapshots({ snapshots: [{ handle: SNAPSHOT, volume: VOLUME }] });
    if (at === 'expand') assert.equal((await again.expandVolume({ handle: VOLUME, bytes: 8 * MIB })).bytes, 8 * MIB);
    await again.close();
  }
});

// S-684
test('a provisional volume says since when, also after a restart, until it is confirmed', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'coracle-pool-'));
  const signal = new AbortController().signal;
  const open = (): Promise<Pool> => openPool({ directory, clock: systemClock, log: silentLogger, signal });
  const since = async (of: Pool): Promise<string | undefined> => (await of.inspect()).volumes[0]?.provisionalSince;
  const first = await open();
  await first.createVolume({ ...raw(1), provisional: true });
  const firstTime = await since(first);
  assert.ok(Math.abs(Date.parse(firstTime ?? '') - systemClock.now()) < 60_000);
  await first.close();
  const second = await poolIn(t, { directory });
  assert.equal(await since(second), firstTime);
  await second.confirmVolume({ handle: VOLUME });
  await second.confirmVolume({ handle: OTHER });
  // Asked for again by a provisioner that did not see its reply: it is what it was.
  await second.createVolume({ ...raw(1), provisional: true });
  assert.equal(await since(second), undefined);
  await second.close();
  assert.equal(await since(await poolIn(t, { directory })), undefined);
});
