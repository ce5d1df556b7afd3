import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { isInstalled } from '../../../../tools/setup/host-packages.ts';
import { run } from '../../../runtime/src/process/run.ts';
import { type IsoFiles, isoImage } from './iso-image.ts';

const SECTOR = 2048;
const made = (files: IsoFiles): Buffer =>
  isoImage({ label: 'cidata', files, fileMode: 0o640, date: new Date('2026-01-02T03:04:05Z') });

/** Files by the names that Windows reads: a reader of Joliet's tree, and of nothing else. */
function joliet(image: Buffer): Map<string, Buffer> {
  const found = new Map<string, Buffer>();
  const walk = (at: number, size: number, path: string): void => {
    for (let next = at * SECTOR; next < at * SECTOR + size; ) {
      const length = image[next]!;
      if (length === 0) {
        next = Math.ceil((next + 1) / SECTOR) * SECTOR;
        continue;
      }
      const id = Buffer.from(image.subarray(next + 33, next + 33 + image[next + 32]!));
      const [where, bytes] = [image.readUInt32LE(next + 2), image.readUInt32BE(next + 14)];
      if (id.length > 1) {
        const name = `${path}${id.swap16().toString('utf16le')}`;
        if (image[next + 25] === 2) walk(where, bytes, `${name}/`);
        else found.set(name, image.subarray(where * SECTOR, where * SECTOR + bytes));
      }
      next += length;
    }
  };
  const root = 17 * SECTOR + 156;
  walk(image.readUInt32LE(root + 2), image.readUInt32LE(root + 10), '');
  return found;
}

const part = fc.stringMatching(/^[A-Za-z0-9_-][A-Za-z0-9_.-]{0,252}$/);
const somePaths = fc.uniqueArray(
  fc.array(part, { minLength: 1, maxLength: 3 }).map((parts) => parts.join('/')),
  { maxLength: 120, comparator: (a, b) => a === b || a.startsWith(`${b}/`) || b.startsWith(`${a}/`) },
);
const someFiles: fc.Arbitrary<IsoFiles> = somePaths.chain((paths) =>
  fc
    .array(fc.uint8Array({ maxLength: 5000 }), { minLength: paths.length, maxLength: paths.length })
    .map((contents) => new Map(paths.map((path, index) => [path, contents[index]!]))),
);

// S-1663: Disks of cloud-init, ConfigMaps and Secrets are ISO images with the names of their files, up to the 253 bytes of a
//   key, for Linux (Rock Ridge), and shortened to 60 for Windows (Joliet); no program of the host makes them.
test('every file is found by the name that Windows reads, shortened where it is long, with its bytes', () => {
  fc.assert(
    fc.property(someFiles, (files) => {
      const found = joliet(made(files));
      assert.equal(found.size, files.size);
      const isShort = (path: string): boolean => path.split('/').every((name) => name.length <= 54);
      for (const [path, bytes] of files)
        if (isShort(path)) assert.deepEqual(found.get(`${path};1`), Buffer.from(bytes), path);
      const contents = (all: Iterable<Uint8Array | string>): string[] =>
        [...all].map((one) => Buffer.from(one).toString('hex')).sort();
      assert.deepEqual(contents(found.values()), contents(files.values()));
    }),
    { numRuns: 30 },
  );
});

// S-1663
test('every file is found by the name that Linux reads, whole, with its mode and bytes', {
  skip: isInstalled('xorriso') ? false : 'no xorriso here, which reads it',
}, async () => {
  const signal = new AbortController().signal;
  await fc.assert(
    fc.asyncProperty(someFiles, async (files) => {
      const dir = mkdtempSync(join(tmpdir(), 'coracle-iso-'));
      try {
        writeFileSync(join(dir, 'x.iso'), made(files));
        const from = [
          'xorriso',
          '-no_rc',
          '-indev',
          join(dir, 'x.iso'),
          '-osirrox',
          'on',
          '-extract',
          '/',
          join(dir, 'x'),
        ];
        const read = await run(from, { signal, timeoutMs: 60_000 });
        assert.ok(read.ok, read.ok ? '' : read.message);
        for (const [path, bytes] of files) {
          assert.deepEqual(readFileSync(join(dir, 'x', path)), Buffer.from(bytes), path);
          assert.equal(statSync(join(dir, 'x', path)).mode & 0o777, 0o640);
        }
      } finally {
        rmSync(dir, { recursive: true, force: true });
      }
    }),
    { numRuns: 10, examples: [[new Map([['d/e/f/g', 'deep']])], [new Map()]] },
  );
});

// S-1663
test('directories stand in the tables of their paths in the order in which they are searched', () => {
  fc.assert(
    fc.property(someFiles, (files) => {
      const image = made(files);
      for (const at of [16 * SECTOR, 17 * SECTOR]) {
        const from = image.readUInt32LE(at + 140) * SECTOR;
        const rows: { readonly parent: number; readonly id: Buffer }[] = [];
        for (let next = from; next < from + image.readUInt32LE(at + 132); ) {
          const length = image[next]!;
          rows.push({ parent: image.readUInt16LE(next + 6), id: image.subarray(next + 8, next + 8 + length) });
          next += 8 + length + (length % 2);
        }
        const sorted = rows.toSorted((one, other) => one.parent - other.parent || Buffer.compare(one.id, other.id));
        assert.deepEqual(rows, sorted);
      }
    }),
    {
      numRuns: 30,
      examples: [
        [
          new Map([
            ['b/z/f', ''],
            ['b/a/f', ''],
            ['a/f', ''],
          ]),
        ],
      ],
    },
  );
});

test('the smallest image is large enough for programs that read 64 KiB to find its label', () => {
  const image = made(new Map());
  assert.ok(image.length > 300 * 1024 && image.length % SECTOR === 0);
  assert.equal(image.readUInt32LE(16 * SECTOR + 80) * SECTOR, image.length);
});

test('a path that goes through a file makes no image', () => {
  for (const paths of [
    ['a', 'a/b'],
    ['a/b', 'a'],
  ])
    assert.throws(() => made(new Map(paths.map((path) => [path, '']))), /"a" is a file and a directory/);
});
