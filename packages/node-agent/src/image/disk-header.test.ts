import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { inspectDiskHeader } from './disk-header.ts';

/** A sound version 3 header of 64 KiB clusters and 1 GiB, with changes. */
function qcow2(change: (view: DataView) => void = () => {}): Uint8Array {
  const bytes = new Uint8Array(65536);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, 0x514649fb);
  view.setUint32(4, 3);
  view.setUint32(20, 16);
  view.setBigUint64(24, 1n << 30n);
  view.setUint32(36, 2);
  view.setUint32(100, 104);
  change(view);
  return bytes;
}

test('inspectDiskHeader() accepts sound qcow2 and raw', () => {
  assert.deepEqual(inspectDiskHeader(qcow2(), 200_000), { format: 'qcow2', virtualSize: 1 << 30 });
  assert.deepEqual(
    inspectDiskHeader(
      qcow2((v) => v.setUint32(4, 2)),
      200_000,
    ),
    { format: 'qcow2', virtualSize: 1 << 30 },
  );
  assert.deepEqual(inspectDiskHeader(new Uint8Array(512), 513), { format: 'raw', virtualSize: 1024 });
  assert.deepEqual(inspectDiskHeader(new Uint8Array([1]), 1), { format: 'raw', virtualSize: 512 });
});

// S-108: The headers of untrusted disk images are checked: nothing points beyond its own file.
test('inspectDiskHeader() refuses every header that reaches beyond its own file', () => {
  const cases: [string, (view: DataView) => void, RegExp][] = [
    ['backing file', (v) => v.setBigUint64(8, 512n), /backing file/],
    ['backing length', (v) => v.setUint32(16, 9), /backing file/],
    ['data file bit', (v) => v.setBigUint64(72, 4n), /external data file/],
    ['data file name', (v) => [v.setUint32(104, 0x44415441), v.setUint32(108, 8)], /external data file/],
    ['backing format', (v) => [v.setUint32(104, 0xe2792aca), v.setUint32(108, 5)], /backing format/],
    [
      'data file behind another extension',
      (v) => [v.setUint32(104, 0x6803f857), v.setUint32(108, 48), v.setUint32(160, 0x44415441)],
      /external data file/,
    ],
    ['runaway extension', (v) => [v.setUint32(104, 1), v.setUint32(108, 0x7fffffff)], /runs over/],
    ['corrupt', (v) => v.setBigUint64(72, 2n), /corrupt/],
    ['unknown feature', (v) => v.setBigUint64(72, 1n << 40n), /unknown features/],
    ['version', (v) => v.setUint32(4, 4), /version 4/],
    ['size', (v) => v.setBigUint64(24, 1n << 62n), /virtual size/],
    ['no size', (v) => v.setBigUint64(24, 0n), /virtual size/],
    ['cluster', (v) => v.setUint32(20, 31), /cluster size/],
    ['encryption', (v) => v.setUint32(32, 2), /encrypted/],
    ['L1', (v) => v.setUint32(36, 0xffffffff), /L1/],
    ['header length', (v) => v.setUint32(100, 5), /header length/],
  ];
  for (const [name, change, why] of cases) assert.throws(() => inspectDiskHeader(qcow2(change), 200_000), why, name);
  assert.throws(() => inspectDiskHeader(qcow2().subarray(0, 60), 60), /cut off/);
  assert.throws(() => inspectDiskHeader(new TextEncoder().encode('KDMVxxxx'), 8), /VMDK/);
  assert.throws(() => inspectDiskHeader(new TextEncoder().encode('vhdxfilexx'), 10), /VHDX/);
  assert.throws(() => inspectDiskHeader(new Uint8Array(0), 0), /empty/);
});

// S-108
test('inspectDiskHeader() either throws an Error or answers within bounds, for any bytes', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), fc.boolean(), (bytes, magic) => {
      if (magic) bytes.set([0x51, 0x46, 0x49, 0xfb].slice(0, bytes.length));
      try {
        const found = inspectDiskHeader(bytes, bytes.length);
        assert.ok(found.virtualSize > 0 && Number.isSafeInteger(found.virtualSize));
      } catch (error) {
        assert.equal((error as Error).name, 'Error');
      }
    }),
  );
});
