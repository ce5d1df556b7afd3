/** Fills that go wrong: servers and disks. The end of the process in the middle: `test/faults/fill-kill.test.ts`. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, type TestContext, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import type { FillReport } from '../../packages/cluster-rules/src/storage/pool-calls.ts';
import { createFills, type Fills } from '../../packages/node-agent/src/fill/fills.ts';
import { openImageStore } from '../../packages/node-agent/src/image/image-store.ts';
import { openPool, type Pool } from '../../packages/node-agent/src/storage/pool.ts';
import { systemClock as clock } from '../../packages/runtime/src/clock/clock.ts';
import { NEVER } from '../../packages/runtime/src/http/seam.ts';
import { silentLogger as log } from '../../packages/runtime/src/log/log.ts';
import { run } from '../../packages/runtime/src/process/run.ts';
import { eventually } from '../testkit/eventually.ts';
import { FILL_BYTES, type FillBench, HANDLE, openFillBench } from '../testkit/killed-fills.ts';

const MIB = 1024 * 1024;
let bench: FillBench;
before(async () => {
  bench = await openFillBench();
});
after(() => bench?.close());

interface Filling {
  readonly pool: Pool;
  readonly fills: Fills;
  fill(url: string, attempt: number, more?: object): Promise<FillReport>;
  close(): Promise<void>;
}
/** Only who waits for a server that stalls has a short time for it: a busy machine is silent for a second now and then. */
async function filling(directory: string, bytes = FILL_BYTES, stallMs = 60_000): Promise<Filling> {
  const pool = await openPool({ directory: join(directory, 'claims'), clock, log, signal: NEVER });
  const images = await openImageStore(join(directory, 'images'), { clock, log });
  const fills = createFills({ pool, images, clock, log, signal: NEVER, stallMs });
  return {
    pool,
    fills,
    fill: (url, attempt, more = {}) =>
      eventually(
        () =>
          fills.fill({
            handle: HANDLE,
            bytes,
            mode: 'Block',
            format: 'qcow2',
            attempt,
            source: { type: 'http', url, ...more },
          }),
        ({ state }) => state !== 'running',
      ),
    async close() {
      await fills.close();
      await pool.close();
    },
  };
}
const failed = (report: FillReport, problem: string, message: RegExp): void => {
  assert.equal(report.state, 'failed', JSON.stringify(report));
  if (report.state !== 'failed') return;
  assert.equal(report.problem, problem);
  assert.match(report.message, message);
};

const wrongDigest = { checksum: `sha256:${'0'.repeat(64)}` };
const SERVERS: readonly (readonly [
  what: string,
  set: (bench: FillBench) => void,
  more: object,
  problem: string,
  RegExp,
])[] = [
  ['stalls', ({ server }) => server.stall.push(MIB), {}, 'Source', /has sent nothing for 2 s/],
  ['breaks off', ({ server }) => server.cut.push(MIB), {}, 'Source', /broke off|connection ended/],
  ['answers 503', ({ server }) => server.fail.push(503), {}, 'Source', /expected status code 200, got 503/],
  ['answers 401', ({ server }) => server.fail.push(401), {}, 'Source', /secretRef names credentials/],
  ['gives other bytes', () => {}, wrongDigest, 'Checksum', /the checksum does not match: expected sha256:0000/],
  ['has gone', ({ server }) => server.fail.push(404), {}, 'Source', /got 404/],
];
// S-1113: A server that stalls, breaks off, refuses or gives other bytes ends an attempt with words that say so; the next one
//   fills the volume, and nothing of the first is left.
for (const [what, set, more, problem, message] of SERVERS)
  test(`a server that ${what}`, async () => {
    const { fill, pool, close } = await filling(
      await bench.directory(),
      FILL_BYTES,
      what === 'stalls' ? 2000 : undefined,
    );
    const url = bench.forms.get('raw') ?? '';
    set(bench);
    failed(await fill(url, 0, more), problem, message);
    assert.equal(pool.has(HANDLE), false);
    const done = await fill(url, 1);
    assert.equal(done.state, 'done', JSON.stringify(done));
    assert.equal((await readdir(join(pool.directory, HANDLE))).length, 1);
    await close();
  });

// S-1113
test('redirects lead on, without credentials, and not in circles or to other networks', async () => {
  const { fill, close } = await filling(await bench.directory());
  const { server } = bench;
  const credentials = { credentials: { username: 'u', password: 'p' }, headers: { 'x-key': 'k' } };
  server.redirects.set('/circle', '/circle');
  failed(await fill(`${server.url}/circle`, 0), 'Source', /redirects more than 5 times/);
  server.redirects.set('/cloud', 'http://169.254.169.254/latest');
  failed(await fill(`${server.url}/cloud`, 1), 'Source', /images are not fetched from/);
  server.redirects.set('/away', bench.forms.get('raw')?.replace('127.0.0.1', 'localhost') ?? '');
  const done = await fill(`${server.url}/away`, 2, credentials);
  assert.equal(done.state, 'done', JSON.stringify(done));
  assert.equal(server.lastHeaders.authorization, undefined);
  assert.equal(server.lastHeaders['x-key'], undefined);
  await close();
});

/** Mounts a small file system; false after the test was skipped because none can be mounted. */
async function mounted(t: TestContext, path: string, mib: number): Promise<boolean> {
  await mkdir(path, { recursive: true });
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${mib}m,mode=0700`, 'tmpfs', path], { stdio: 'ignore' });
    return true;
  } catch {
    t.skip('a tmpfs cannot be mounted here (root only)');
    return false;
  }
}

// S-1114: A disk that is full, in the download, while unpacking or while converting, ends the attempt as that and is given
//   back all that the attempt took; with room again the next one fills the volume.
test('a full disk at each step', async (t) => {
  const inner = randomBytes(24 * MIB);
  const directory = await bench.directory();
  await writeFile(join(directory, 'inner'), inner);
  const made = await run(
    ['qemu-img', 'convert', '-f', 'raw', '-O', 'qcow2', join(directory, 'inner'), join(directory, 'inner.qcow2')],
    { signal: NEVER, timeoutMs: 60_000 },
  );
  assert.ok(made.ok);
  const url = bench.server.serve(
    '/large.qcow2.gz',
    gzipSync(await readFile(join(directory, 'inner.qcow2')), { level: 0 }),
  );
  for (const [step, mib] of [
    ['download', 20],
    ['unpack', 42],
    ['convert', 70],
  ] as const) {
    const disk = join(directory, step);
    if (!(await mounted(t, disk, mib))) return;
    try {
      const { fill, pool, close } = await filling(disk, 24 * MIB);
      failed(await fill(url, 0), 'NoSpace', /no room|MiB free/);
      assert.deepEqual(await readdir(join(pool.directory, HANDLE, 'fill')), [], step);
      execFileSync('mount', ['-o', 'remount,size=512m', disk], { stdio: 'ignore' });
      const done = await fill(url, 1);
      assert.equal(done.state, 'done', `${step}: ${JSON.stringify(done)}`);
      await close();
    } finally {
      execFileSync('umount', ['-l', disk], { stdio: 'ignore' });
    }
  }
});

// S-1242
test('a disk that fills up in the middle of an upload', async (t) => {
  const bytes = randomBytes(24 * MIB);
  const disk = await bench.directory();
  if (!(await mounted(t, disk, 20))) return;
  try {
    const { fills, pool, close } = await filling(disk, 24 * MIB);
    const call = {
      handle: HANDLE,
      bytes: 24 * MIB,
      mode: 'Block',
      format: 'qcow2',
      source: { type: 'upload' },
    } as const;
    await fills.fill({ ...call, attempt: 0 });
    const sent = () =>
      fills.receive(HANDLE, {
        bytes: bytes.length,
        async *chunks() {
          for (let at = 0; at < bytes.length; at += MIB) yield bytes.subarray(at, at + MIB);
        },
        received() {},
      });
    await assert.rejects(sent(), /no room|MiB free/);
    failed(await fills.fill({ ...call, attempt: 0 }), 'NoSpace', /no room|MiB free/);
    assert.deepEqual(await readdir(join(pool.directory, HANDLE, 'fill')), []);
    execFileSync('mount', ['-o', 'remount,size=512m', disk], { stdio: 'ignore' });
    await sent();
    assert.equal((await fills.fill({ ...call, attempt: 1 })).state, 'done');
    await close();
  } finally {
    execFileSync('umount', ['-l', disk], { stdio: 'ignore' });
  }
});
