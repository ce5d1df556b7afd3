/** Images that were made to do harm, or to fill memory: what is read of them is what an honest image would have given. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { type TarEntry, tarOf } from '../../../runtime/src/oci/registry-server.fixture.ts';
import type { SourceTree } from '../git/source.ts';
import { unpackImage } from './unpack-image.ts';

const NEVER = new AbortController().signal;
const good: TarEntry = { name: 'good.yaml', content: 'good: true' };

const shown = ({ files, unread }: SourceTree): Record<string, string> => ({
  ...Object.fromEntries(files.map(({ path, bytes }) => [path, Buffer.from(bytes).toString()])),
  ...Object.fromEntries(unread.map(({ path, problem }) => [path, `unread: ${problem}`])),
});
const unpack = async (
  layers: readonly (readonly TarEntry[])[],
  more: Partial<Parameters<typeof unpackImage>[1]> = {},
): Promise<Record<string, string>> =>
  shown(await unpackImage(await Promise.all(layers.map(tarOf)), { dir: '', isAll: false, signal: NEVER, ...more }));

const OUT = 'unread: it is a link that leads out of the image';
const NOWHERE = 'unread: it is a link that leads to no file';
const ROWS: readonly [what: string, entries: readonly TarEntry[], beside: Record<string, string>][] = [
  ['a name that climbs out', [{ name: '../../escape.yaml', content: 'x' }], {}],
  ['a name that climbs within', [{ name: 'a/../../escape.yaml', content: 'x' }], {}],
  ['an absolute name is one of the image', [{ name: '/etc/x.yaml', content: 'x: 1' }], { 'etc/x.yaml': 'x: 1' }],
  ['a link to this host', [{ name: 'l.yaml', type: 'symlink', linkname: '/etc/passwd' }], { 'l.yaml': OUT }],
  ['a link that climbs out', [{ name: 'a/l.yaml', type: 'symlink', linkname: '../../x' }], { 'a/l.yaml': OUT }],
  [
    'a link to itself',
    [{ name: 'l.yaml', type: 'symlink', linkname: 'l.yaml' }],
    { 'l.yaml': 'unread: it is a link that leads nowhere' },
  ],
  ['a link to nothing', [{ name: 'l.yaml', type: 'symlink', linkname: 'missing' }], { 'l.yaml': NOWHERE }],
  ['a hard link out', [{ name: 'l.yaml', type: 'link', linkname: '../../etc/passwd' }], { 'l.yaml': OUT }],
  [
    'a file through a link to a directory of this host',
    [
      { name: 'd', type: 'symlink', linkname: '/tmp' },
      { name: 'd/x.yaml', content: 'x: 1' },
    ],
    { 'd/x.yaml': 'x: 1' },
  ],
  ['a device', [{ name: 'dev.yaml', type: 'character-device' }], {}],
  [
    'a name with a newline',
    [{ name: 'a\nb.yaml', content: 'x: 1' }],
    { '"a\\nb.yaml"': 'unread: its name holds control characters' },
  ],
  ['a pipeline of another system', [{ name: '.github/workflows/x.yaml', content: 'x: 1' }], {}],
  ['a program', [{ name: 'install.sh', content: '#!/bin/sh' }], {}],
];
for (const [what, entries, beside] of ROWS) {
  // S-921: An image that was made to do harm writes and reads nothing on this host, and what else it holds is read; one
  //   that unpacks to more than the bounds is refused as a whole.
  test(`unpackImage(): ${what}: the rest is read`, async () => {
    assert.deepEqual(await unpack([[...entries, good]]), { 'good.yaml': 'good: true', ...beside });
  });
}

test('unpackImage() follows links within the image, hard ones too, and reads below a directory', async () => {
  const entries: TarEntry[] = [
    { name: 'base/a.yaml', content: 'a: 1' },
    { name: 'app/l.yaml', type: 'symlink', linkname: '../base/a.yaml' },
    { name: 'app/h.yaml', type: 'link', linkname: 'base/a.yaml' },
    { name: 'app/notes.txt', content: 'text' },
  ];
  assert.deepEqual(await unpack([entries], { dir: 'app' }), { 'app/h.yaml': 'a: 1', 'app/l.yaml': 'a: 1' });
  assert.deepEqual(Object.keys(await unpack([entries], { dir: 'app', isAll: true })), [
    'app/h.yaml',
    'app/l.yaml',
    'app/notes.txt',
    'base/a.yaml',
  ]);
  await assert.rejects(unpack([entries], { dir: 'missing' }), /no directory "missing"/);
  assert.deepEqual(await unpack([[{ name: 'empty', type: 'directory' }]], { dir: 'empty' }), {});
});

test('unpackImage() lays layers on top of one another, whatever the order of their entries', async () => {
  const lower: TarEntry[] = [
    { name: 'a/one.yaml', content: '1' },
    { name: 'a/two.yaml', content: '2' },
    { name: 'b/one.yaml', content: '3' },
    { name: 'c/one.yaml', content: '4' },
    { name: 'd.yaml', content: '5' },
  ];
  const upper: TarEntry[] = [
    { name: 'a/two.yaml', content: 'new' },
    { name: 'a/.wh..wh..opq', content: '' },
    { name: '.wh.b', content: '' },
    { name: 'c', content: 'a file now' },
    { name: 'd.yaml', type: 'directory' },
    { name: 'd.yaml/e.yaml', content: '6' },
  ];
  assert.deepEqual(await unpack([lower, upper]), { 'a/two.yaml': 'new', 'd.yaml/e.yaml': '6' });
});

const LIMITS: readonly [what: string, layers: readonly (readonly TarEntry[])[], limits: object, text: RegExp][] = [
  ['too many entries', [[good, good], [good]], { limits: { entries: 2 } }, /more than 2 entries/],
  ['too many files', [[good, { name: 'b.txt', content: '' }]], { limits: { files: 1 } }, /more than 1 files/],
  ['too many bytes', [[good], [{ name: 'b.txt', content: 'b' }]], { limits: { totalBytes: 10 } }, /more than 10 bytes/],
  ['a bomb', [[{ name: 'big', content: Buffer.alloc(1 << 20) }]], { maxUnpackedBytes: 65_536 }, /unpacks to more/],
];
for (const [what, layers, limits, text] of LIMITS) {
  // S-921
  test(`unpackImage() refuses ${what} as a whole`, async () => {
    await assert.rejects(unpack(layers, limits), { name: 'SourceError', message: text });
  });
}

test('unpackImage() leaves out a single large file, and tells packed layers by their bytes', async () => {
  const layer = await tarOf([good, { name: 'large.yaml', content: 'x'.repeat(20) }]);
  for (const bytes of [layer, gzipSync(layer), zstdCompressSync(layer)])
    assert.deepEqual(
      shown(await unpackImage([bytes], { dir: '', isAll: false, signal: NEVER, limits: { fileBytes: 10 } })),
      { 'good.yaml': 'good: true', 'large.yaml': 'unread: it has 20 bytes; 10 are read' },
    );
  const bomb = gzipSync(Buffer.alloc(4 << 20));
  await assert.rejects(
    unpackImage([bomb], { dir: '', isAll: false, signal: NEVER, maxUnpackedBytes: 1 << 20 }),
    /unpacks to more/,
  );
  for (const broken of [layer.subarray(0, 700), gzipSync(layer).subarray(0, 40), Buffer.from('no archive'.repeat(60))])
    await assert.rejects(unpackImage([broken], { dir: '', isAll: false, signal: NEVER }), /cannot be unpacked/);
});
