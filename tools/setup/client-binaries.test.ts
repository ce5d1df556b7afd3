import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deflateRawSync } from 'node:zlib';
import { fileInZip } from './client-binaries.ts';

/** A zip archive of these files; those of the second list are deflated. Checksums are not read, and left 0. */
function zip(files: Readonly<Record<string, string>>, deflated: readonly string[]): Buffer {
  const locals: Buffer[] = [];
  const entries: Buffer[] = [];
  let offset = 0;
  for (const [name, text] of Object.entries(files)) {
    const method = deflated.includes(name) ? 8 : 0;
    const data = method === 8 ? deflateRawSync(text) : Buffer.from(text);
    const extra = Buffer.from('extra');
    const local = Buffer.alloc(30);
    local.writeUInt32LE(0x04034b50, 0);
    local.writeUInt16LE(name.length, 26);
    local.writeUInt16LE(extra.length, 28);
    const entry = Buffer.alloc(46);
    entry.writeUInt32LE(0x02014b50, 0);
    entry.writeUInt16LE(method, 10);
    entry.writeUInt32LE(data.length, 20);
    entry.writeUInt32LE(text.length, 24);
    entry.writeUInt16LE(name.length, 28);
    entry.writeUInt32LE(offset, 42);
    const whole = Buffer.concat([local, Buffer.from(name), extra, data]);
    locals.push(whole);
    entries.push(entry, Buffer.from(name));
    offset += whole.length;
  }
  const end = Buffer.alloc(22);
  end.writeUInt32LE(0x06054b50, 0);
  end.writeUInt16LE(Object.keys(files).length, 10);
  end.writeUInt32LE(offset, 16);
  return Buffer.concat([...locals, ...entries, end, Buffer.from('a remark')]);
}

test('fileInZip() finds stored and deflated files by name', () => {
  const archive = zip({ 'a/a': 'stored', 'b/b': 'deflated '.repeat(50) }, ['b/b']);
  assert.equal(fileInZip(archive, 'a/a').toString(), 'stored');
  assert.equal(fileInZip(archive, 'b/b').toString(), 'deflated '.repeat(50));
});

test('fileInZip() tells what is missing', () => {
  assert.throws(() => fileInZip(zip({ a: 'x' }, []), 'b'), /it has no b/);
  assert.throws(() => fileInZip(Buffer.alloc(100), 'b'), /no zip archive/);
});
