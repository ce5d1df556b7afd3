import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type TarMember, tarOf } from './tar.ts';

const member = (name: string, text: string, bytes = text.length): TarMember => ({
  name,
  bytes,
  async *chunks() {
    yield Buffer.from(text);
  },
});
async function collect(members: readonly TarMember[]): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  for await (const part of tarOf(members)) parts.push(part);
  return Buffer.concat(parts);
}

// S-1382
test('members lie in blocks, with their sums, and two empty blocks end them', async () => {
  const archive = await collect([member('./a', 'hello')]);
  assert.equal(archive.length, 4 * 512);
  assert.equal(archive.toString('latin1', 0, 3), './a');
  assert.equal(archive.toString('latin1', 124, 135), '00000000005');
  const head = Buffer.from(archive.subarray(0, 512)).fill(' ', 148, 156);
  assert.equal(
    Number.parseInt(archive.toString('latin1', 148, 154), 8),
    head.reduce((sum, byte) => sum + byte, 0),
  );
  assert.equal(archive.toString('latin1', 512, 517), 'hello');
  assert.ok(archive.subarray(1024).every((byte) => byte === 0));
});

// S-1382
test('a member of other bytes than it said makes no archive', async () => {
  for (const bytes of [4, 6]) await assert.rejects(collect([member('./a', 'hello', bytes)]), /not of the size/);
});

// S-1382
test('a size that octal digits cannot say is written in base 256', async () => {
  const large = tarOf([member('./a', '', 2 ** 40)]);
  const { value } = await large.next();
  assert.equal((value as Buffer)[124], 0x80);
  assert.equal((value as Buffer).readBigUInt64BE(128), 2n ** 40n);
  await large.return(undefined);
});
