/** Images and archives that nobody means well with: refused within bounds, and nothing of the host comes in. */
import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { eventually } from '../../../../test/testkit/eventually.ts';
import { type ImageServer, startImageServer } from '../../../../test/testkit/image-server.ts';
import type { FillReport } from '../../../cluster-rules/src/storage/pool-calls.ts';
import { systemClock as clock } from '../../../runtime/src/clock/clock.ts';
import { NEVER } from '../../../runtime/src/http/seam.ts';
import { silentLogger as log } from '../../../runtime/src/log/log.ts';
import { run } from '../../../runtime/src/process/run.ts';
import { openImageStore } from '../image/image-store.ts';
import { openPool, type Pool } from '../storage/pool.ts';
import { createFills, type Fills } from './fills.ts';

const MIB = 1024 * 1024;
const BYTES = 16 * MIB;
let directory: string;
let pool: Pool;
let fills: Fills;
let server: ImageServer;
let serial = 0;
before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'coracle-hostile-'));
  pool = await openPool({ directory: join(directory, 'claims'), clock, log, signal: NEVER });
  const images = await openImageStore(join(directory, 'images'), { clock, log });
  fills = createFills({ pool, images, clock, log, signal: NEVER });
  server = await startImageServer();
  await writeFile(join(directory, 'secret.txt'), 'host secret'.repeat(100_000));
});
after(async () => {
  await server.close();
  await fills.close();
  await pool.close();
  await rm(directory, { recursive: true, force: true });
});

async function fillWith(bytes: Uint8Array): Promise<{ report: FillReport; handle: string }> {
  const handle = `00000000-0000-4000-8000-${String(++serial).padStart(12, '0')}`;
  const url = server.serve(`/${serial}`, bytes);
  const call = {
    handle,
    bytes: BYTES,
    mode: 'Block',
    format: 'qcow2',
    attempt: 0,
    source: { type: 'http', url },
  } as const;
  const report = await eventually(
    () => fills.fill(call),
    ({ state }) => state !== 'running',
  );
  return { report, handle };
}

async function refused(bytes: Uint8Array, message: RegExp): Promise<void> {
  const { report, handle } = await fillWith(bytes);
  assert.equal(report.state, 'failed', JSON.stringify(report));
  assert.match(report.state === 'failed' ? report.message : '', message);
  assert.equal(pool.has(handle), false);
  const left = await readdir(join(pool.directory, handle, 'fill'));
  assert.deepEqual(left, [], 'nothing of it is left');
}

async function made(...argv: string[]): Promise<Buffer> {
  const path = join(directory, `made-${++serial}`);
  const result = await run(['qemu-img', ...argv.map((word) => (word === 'OUT' ? path : word))], {
    signal: NEVER,
    timeoutMs: 60_000,
    cwd: directory,
  });
  assert.ok(result.ok, result.ok ? '' : result.message);
  return readFile(path);
}
const secret = (): string => join(directory, 'secret.txt');
const patched = (image: Buffer, change: (image: Buffer) => void): Buffer => {
  const copy = Buffer.from(image);
  change(copy);
  return copy;
};

// S-1109: An image that names another file of the host (a backing file, external data, a parent, extents), claims a size that
//   the claim has no room for, or is broken, is refused before any tool opens it, and leaves nothing.
test('qcow2 with a backing file', async () => {
  await refused(await made('create', '-q', '-f', 'qcow2', '-b', secret(), '-F', 'raw', 'OUT', '1M'), /backing file/);
});
// S-1109
test('qcow2 with an external data file', async () => {
  const image = await made('create', '-q', '-f', 'qcow2', '-o', `data_file=${secret()}.data`, 'OUT', '1M');
  await refused(image, /external data file/);
});
// S-1109
test('a backing file inside gzip and zstd', async () => {
  const image = await made('create', '-q', '-f', 'qcow2', '-b', secret(), '-F', 'raw', 'OUT', '1M');
  await refused(gzipSync(image), /backing file/);
  await refused(zstdCompressSync(image), /backing file/);
});
// S-1109
test('vmdk with a parent, of extents only, and as a descriptor', async () => {
  const image = await made('create', '-q', '-f', 'vmdk', 'OUT', '1M');
  const parent = patched(image, (bytes) => {
    const at = bytes.indexOf('createType=');
    assert.ok(at > 0);
    bytes.write(`parentFileNameHint="${secret()}"\n`, at);
  });
  await refused(parent, /names a parent/);
  await refused(
    patched(image, (bytes) => bytes.fill(0, 12, 20)),
    /names other files/,
  );
  const descriptor = Buffer.from(
    `# Disk DescriptorFile\nversion=1\ncreateType="monolithicFlat"\nRW 8 FLAT "${secret()}" 0\n`,
  );
  await refused(descriptor, /descriptor/);
});
// S-1109
test('vdi that is a difference to another', async () => {
  const image = await made('create', '-q', '-f', 'vdi', 'OUT', '1M');
  await refused(
    patched(image, (bytes) => bytes.writeUInt32LE(4, 0x4c)),
    /difference/,
  );
});
// S-1109
test('a virtual size beyond the claim, in each format', async () => {
  for (const format of ['qcow2', 'vmdk', 'vdi'])
    await refused(await made('create', '-q', '-f', format, 'OUT', '1G'), /larger than the reported available storage/);
});
// S-1109
test('a raw image beyond the claim', async () => {
  await refused(
    Buffer.concat([Buffer.from([1, 0]), Buffer.alloc(BYTES)]),
    /larger than the reported available storage/,
  );
});
// S-1109
test('a broken qcow2', async () => {
  const image = await made('create', '-q', '-f', 'qcow2', 'OUT', '1M');
  await refused(image.subarray(0, 80), /cut off/);
  const torn = patched(image, (bytes) => bytes.writeBigUInt64BE(0x7fff_ffff_0000n, 40));
  await refused(torn, /damaged/);
});

// S-1110: What unpacks to more than the claim has room for is broken off there: gzip, zstd and xz.
test('bombs', async () => {
  const zeros = Buffer.alloc(128 * MIB);
  await refused(gzipSync(zeros), /unpacks to more/);
  await refused(zstdCompressSync(zeros), /unpacks to more/);
  const path = join(directory, 'zeros');
  await writeFile(path, zeros);
  const packed = await run(['xz', '-0', '-f', path], { signal: NEVER, timeoutMs: 60_000 });
  assert.ok(packed.ok);
  await refused(await readFile(`${path}.xz`), /unpacks to more/);
});
// S-1110
test('packed twice, cut off, and other containers', async () => {
  await refused(gzipSync(gzipSync(Buffer.alloc(MIB, 7))), /more than once/);
  await refused(gzipSync(Buffer.alloc(MIB, 7)).subarray(0, 500), /cannot be unpacked/);
  const tar = Buffer.alloc(10_240);
  tar.write('../../etc/passwd', 0);
  tar.write('ustar', 257);
  await refused(tar, /tar archive/);
  await refused(Buffer.from('<html><body>404</body></html>'), /text file/);
  assert.equal((await stat(secret())).size, 1_100_000);
});
