import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { checkDiskSource } from './import-source.ts';

// S-505: An import of what is no disk image is refused in one line that says what to do instead.
test('what is no disk image is refused in one line that says what to do instead', async (t) => {
  const dir = await mkdtemp(join(tmpdir(), 'coracle-import-'));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const at = (name: string): string => join(dir, name);
  await writeFile(at('disk.img.gz'), gzipSync(Buffer.alloc(4096)));
  await writeFile(at('page.html'), `<html><body>404 nicht gefunden: ü${'.'.repeat(5000)}</body></html>\n`);
  await writeFile(at('disk.img'), Buffer.alloc(4096));
  await writeFile(at('text-and-nothing.img'), Buffer.concat([Buffer.from('hello\n'), Buffer.alloc(506)]));
  const refused: readonly [string, RegExp][] = [
    ['https://example.test/disk.qcow2', /is a URL.*curl -LO https:\/\/example.test\/disk.qcow2/],
    [dir, /is a directory; name the disk image in it$/],
    [at('disk.img.gz'), /is packed with gzip; unpack it first: gunzip -k .*disk\.img\.gz$/],
    [at('page.html'), /is a text file and no disk image/],
    ['/dev/null', /is not a file/],
  ];
  for (const [source, message] of refused)
    await assert.rejects(checkDiskSource(source), (error: Error) => {
      assert.match(error.message, message);
      assert.ok(!error.message.includes('\n'));
      return true;
    });
  for (const source of [at('disk.img'), at('text-and-nothing.img'), at('missing')]) await checkDiskSource(source);
});
