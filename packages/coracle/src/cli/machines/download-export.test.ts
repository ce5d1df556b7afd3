import assert from 'node:assert/strict';
import { resolve } from 'node:path';
import { test } from 'node:test';
import { chooseForm, chooseVolume } from './export.ts';

const disk = (name: string) => ({
  name,
  formats: [
    { format: 'raw' as const, url: `https://h/${name}/raw` },
    { format: 'gzip' as const, url: `https://h/${name}/gz` },
  ],
});
const files = {
  name: 'dump',
  formats: [
    { format: 'dir' as const, url: 'https://h/dump/dir/' },
    { format: 'tar.gz' as const, url: 'https://h/dump/tar' },
  ],
};

// S-1388
test('a volume is named where there are several', () => {
  assert.equal(chooseVolume([disk('a')], undefined, 'ns/vm').name, 'a');
  assert.equal(chooseVolume([disk('a'), disk('b')], 'b', 'ns/vm').name, 'b');
  assert.throws(() => chooseVolume([disk('a'), disk('b')], undefined, 'ns/vm'), /2 volumes: --volume is one of a, b/);
  assert.throws(() => chooseVolume([disk('a')], 'c', 'ns/vm'), /no volume c: it has a/);
});

// S-1388
test('a disk comes in the form that is asked for, files as an archive', () => {
  const chosen = (...given: Parameters<typeof chooseForm>) => {
    const { url, isPacked, file } = chooseForm(...given);
    return [url, isPacked, file];
  };
  assert.deepEqual(chosen(disk('a'), 'gzip', undefined), ['https://h/a/gz', false, resolve('a.img.gz')]);
  assert.deepEqual(chosen(disk('a'), 'raw', undefined), ['https://h/a/raw', false, resolve('a.img')]);
  assert.deepEqual(chosen(files, 'gzip', '/tmp/x'), ['https://h/dump/tar', false, '/tmp/x']);
  assert.deepEqual(chosen(files, 'raw', undefined), ['https://h/dump/tar', true, resolve('dump.tar')]);
  assert.throws(() => chosen({ name: 'a' }, 'raw', undefined), /is not offered as raw/);
});
