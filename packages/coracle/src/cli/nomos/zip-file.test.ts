import assert from 'node:assert/strict';
import { test } from 'node:test';
import { crc32, inflateRawSync } from 'node:zlib';
import { zipFile } from './zip-file.ts';

/** Reads a zip file by its directory, as a program does that did not write it. */
function read(bytes: Buffer): Map<string, string> {
  const end = bytes.lastIndexOf(Buffer.from('PK\x05\x06', 'latin1'));
  const found = new Map<string, string>();
  let at = bytes.readUInt32LE(end + 16);
  for (let count = bytes.readUInt16LE(end + 10); count > 0; count--) {
    assert.equal(bytes.toString('latin1', at, at + 4), 'PK\x01\x02');
    const [sum, packed, size] = [16, 20, 24].map((offset) => bytes.readUInt32LE(at + offset)) as [
      number,
      number,
      number,
    ];
    const [name, extra, comment] = [28, 30, 32].map((offset) => bytes.readUInt16LE(at + offset)) as [
      number,
      number,
      number,
    ];
    const local = bytes.readUInt32LE(at + 42);
    assert.equal(bytes.toString('latin1', local, local + 4), 'PK\x03\x04');
    const start = local + 30 + bytes.readUInt16LE(local + 26) + bytes.readUInt16LE(local + 28);
    const plain = inflateRawSync(bytes.subarray(start, start + packed));
    assert.deepEqual([plain.length, crc32(plain)], [size, sum]);
    found.set(bytes.toString('utf8', at + 46, at + 46 + name), plain.toString('utf8'));
    at += 46 + name + extra + comment;
  }
  assert.equal(at, end, 'nothing is between the directory and its end');
  return found;
}

test('zipFile() is read back by its directory, whatever is in it', () => {
  const entries = [
    { name: 'a/empty.txt', text: '' },
    { name: 'a/längs.yaml', text: 'ü: "x"\n'.repeat(10_000) },
    { name: 'b.txt', text: 'PK\x05\x06' },
  ];
  const found = read(zipFile(entries, new Date('2026-01-02T03:04:05Z')));
  assert.deepEqual(
    [...found],
    entries.map(({ name, text }) => [name, text]),
  );
  assert.deepEqual(read(zipFile([], new Date())), new Map());
});
