import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type DiskSpace, hasDiskPressure } from '../machine/disk-room.ts';
import { type BinEntry, evictions, MAX_BYTES, MAX_RECORDS } from './bin-bounds.ts';

const entry = (n: number, more: Partial<BinEntry> = {}): BinEntry => ({
  name: `vm-${n}`,
  deletedAt: new Date(Date.UTC(2030, 0, 1) + n * 1000).toISOString(),
  bytes: 1,
  disks: {},
  isBusy: false,
  isLeaving: false,
  ...more,
});
const names = (entries: readonly BinEntry[], spaces: Record<string, DiskSpace> = {}): string[] =>
  evictions(entries, spaces).map(({ name }) => name);

// S-778
test('evictions() takes the oldest of too many machines, and of too many bytes', () => {
  const many = Array.from({ length: MAX_RECORDS + 2 }, (_, n) => entry(MAX_RECORDS + 2 - n));
  assert.deepEqual(names(many), ['vm-1', 'vm-2']);
  const large = [3, 1, 2].map((n) => entry(n, { bytes: MAX_BYTES / 2 }));
  assert.deepEqual(names(large), ['vm-1']);
  assert.deepEqual(names([entry(1, { bytes: MAX_BYTES + 1, isBusy: true }), entry(2)]), ['vm-2']);
});

// S-778
test('evictions() leaves room in a pool, counts what is on its way out as free, and ignores pools it knows nothing of', () => {
  const held = [entry(1, { disks: { a: 200 } }), entry(2, { disks: { a: 200 } }), entry(3, { disks: { b: 9e9 } })];
  const a = (free: number): Record<string, DiskSpace> => ({ a: { free, total: 1000 } });
  assert.deepEqual(names(held, a(200)), []);
  assert.deepEqual(names(held, a(124)), ['vm-1'], 'before the node is under pressure');
  assert.deepEqual(names([held[1]!, entry(0, { disks: { a: 301 } })], a(400)), ['vm-0'], 'its share');
  assert.deepEqual(names([{ ...held[0]!, isLeaving: true, isBusy: true }, held[1]!], a(0)), []);
  assert.deepEqual(names(held, { a: { free: 0, total: 0 } }), [], 'an agent that does not say');
});

// S-778
test('evictions() ends within the bounds, or with nothing left that may go', () => {
  const entries = fc.array(
    fc.record({ used: fc.nat(1000), bytes: fc.nat(MAX_BYTES), isBusy: fc.boolean(), isLeaving: fc.boolean() }),
    { maxLength: 12 },
  );
  fc.assert(
    fc.property(entries, fc.nat(2000), (list, free) => {
      const all = list.map(({ used, isLeaving, isBusy, bytes }, n) =>
        entry(n, { bytes, isLeaving, isBusy: isBusy || isLeaving, disks: { a: used } }),
      );
      const gone = new Set(names(all, { a: { free, total: 4000 } }));
      const left = all.filter(({ name, isLeaving }) => !isLeaving && !gone.has(name));
      const size = (some: readonly BinEntry[]): number => some.reduce((sum, { disks }) => sum + (disks['a'] ?? 0), 0);
      const bin = size(left);
      const fits = bin <= 2000 && !hasDiskPressure({ free: free + size(all) - bin, total: 4000 }, true);
      assert.ok(fits || left.every(({ isBusy, disks }) => isBusy || disks['a'] === 0));
      const bytes = left.reduce((sum, each) => sum + each.bytes, 0);
      assert.ok(bytes <= MAX_BYTES || left.every(({ isBusy }) => isBusy));
    }),
  );
});
