import assert from 'node:assert/strict';
import { mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { run } from '../../../runtime/src/process/run.ts';
import { type EmptyQcow2, emptyQcow2 } from './empty-qcow2.ts';

const MIB = 1024 * 1024;
const signal = new AbortController().signal;
const qemuImg = async (...argv: readonly string[]): Promise<string> => {
  const result = await run(['qemu-img', ...argv], { signal, timeoutMs: 30_000 });
  assert.ok(result.ok, result.stderr);
  return new TextDecoder().decode(result.stdout);
};

const CASES: readonly [what: string, image: EmptyQcow2][] = [
  ['a sector', { bytes: 512 }],
  ['a disk of 10 GiB', { bytes: 10 * 1024 * MIB }],
  ['a disk whose table takes several clusters', { bytes: 9 * 1024 * 1024 * MIB + 512 }],
  ['a disk over a raw one', { bytes: 4 * MIB, backing: { name: 'below.raw', format: 'raw' } }],
  ['a disk over a qcow2 one, larger than it', { bytes: 64 * MIB, backing: { name: './below.qcow2', format: 'qcow2' } }],
];
// S-847: Images of new volumes and snapshots are made without a process of QEMU, and QEMU finds them whole.
for (const [what, image] of CASES)
  test(`emptyQcow2() makes ${what}, which QEMU finds whole, reads as empty and writes to`, async (t) => {
    const directory = await mkdtemp(join(tmpdir(), 'coracle-qcow2-'));
    t.after(() => rm(directory, { recursive: true, force: true }));
    for (const format of ['raw', 'qcow2'])
      await qemuImg('create', '-q', '-f', format, join(directory, `below.${format}`), '4M');
    const path = join(directory, 'image.qcow2');
    const { length, parts } = emptyQcow2(image);
    const file = await open(path, 'wx');
    await file.truncate(length);
    for (const { at, bytes } of parts) await file.write(bytes, 0, bytes.length, at);
    await file.close();

    const check = JSON.parse(await qemuImg('check', '--output=json', path));
    assert.deepEqual([check['check-errors'], check['leaks'], check['corruptions']], [0, undefined, undefined]);
    const info = JSON.parse(await qemuImg('info', '--output=json', path));
    assert.deepEqual(
      [info['virtual-size'], info['cluster-size'], info['backing-filename'], info['backing-filename-format']],
      [image.bytes, 65536, image.backing?.name, image.backing?.format],
    );
    const last = image.bytes - 512;
    const io = [
      'qemu-io',
      ...['read -q -P 0 0 512', `write -q -P 5 ${last} 512`, `read -q -P 5 ${last} 512`].flatMap((one) => ['-c', one]),
      path,
    ];
    const done = await run(io, { signal, timeoutMs: 30_000 });
    assert.ok(done.ok && done.stdout.length === 0, new TextDecoder().decode(done.stdout) + done.stderr);
    assert.equal(JSON.parse(await qemuImg('check', '--output=json', path))['check-errors'], 0);
  });

test('emptyQcow2() has no room for some', () => {
  assert.throws(() => emptyQcow2({ bytes: 2 ** 52 }), RangeError);
  assert.throws(() => emptyQcow2({ bytes: 512, backing: { name: 'x'.repeat(1024), format: 'raw' } }), RangeError);
});
