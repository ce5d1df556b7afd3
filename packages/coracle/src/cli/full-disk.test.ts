import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fullDiskText } from './full-disk.ts';

// S-504: `status` and `up` tell of a full disk, its directory and what is missing.
test('a full disk is reported with its directory, what it means and what is missing', () => {
  const MIB = 1024 ** 2;
  const at = (freeMib: number): string | undefined =>
    fullDiskText('/data', { free: freeMib * MIB, total: 100 * 1024 * MIB });
  assert.equal(at(2048), undefined);
  assert.equal(
    at(1500),
    '1500 MiB left in /data: no guest is started on its nodes; free 1060 MiB there (deletes still work)',
  );
  assert.match(at(10) ?? '', /free 2550 MiB there$/, 'then no write is taken at all');
  assert.match(
    at(20) ?? '',
    /^20 MiB left in \/data: no guest is started, and guests that write are paused; free 2540/,
  );
});
