import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checksumIn } from './checksum-list.ts';

const [A, B] = ['a'.repeat(64), 'B'.repeat(128)];

test('checksumIn() finds a file in lists as vendors write them', () => {
  assert.equal(checksumIn(`${A}  other.img\n${B} *disk.qcow2\n`, 'disk.qcow2'), `sha512:${B.toLowerCase()}`);
  assert.equal(checksumIn(`# disk.qcow2: 12 bytes\nSHA256 (disk.qcow2) = ${A}\n`, 'disk.qcow2'), `sha256:${A}`);
  assert.equal(checksumIn(`${A}  ./images/disk.qcow2`, 'disk.qcow2'), `sha256:${A}`);
  assert.equal(checksumIn(`${B}\n`, 'disk.qcow2'), `sha512:${B.toLowerCase()}`, 'a list of one file need not name it');
});

test('checksumIn() takes no digest of another file, and none that is weak', () => {
  assert.equal(checksumIn(`${A}  other.img\n`, 'disk.qcow2'), undefined);
  assert.equal(checksumIn(`${A}\n${A}\n`, 'disk.qcow2'), undefined);
  assert.equal(checksumIn(`${'a'.repeat(32)}  disk.qcow2\n`, 'disk.qcow2'), undefined);
  assert.equal(checksumIn('<html>not found</html>', 'disk.qcow2'), undefined);
});
