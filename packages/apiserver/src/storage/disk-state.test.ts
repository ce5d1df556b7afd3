import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { DiskState } from './backend.ts';
import { nextDiskState } from './disk-state.ts';

const MIB = 1024 * 1024;

// S-036
it('nextDiskState() gets worse at the marks and better at twice the marks', () => {
  const cases: [from: DiskState, freeMib: number, totalMib: number, to: DiskState][] = [
    ['ok', 64, 100_000, 'ok'],
    ['ok', 63.9, 100_000, 'refuse-creates'],
    ['ok', 15.9, 100_000, 'read-only'],
    ['refuse-creates', 16, 100_000, 'refuse-creates'],
    ['refuse-creates', 128, 100_000, 'refuse-creates'],
    ['refuse-creates', 128.1, 100_000, 'ok'],
    ['refuse-creates', 15.9, 100_000, 'read-only'],
    ['read-only', 32, 100_000, 'read-only'],
    ['read-only', 32.1, 100_000, 'refuse-creates'],
    ['read-only', 128.1, 100_000, 'ok'],
    // A small disk: 5 % of 100 MiB, and a quarter of that.
    ['ok', 5, 100, 'ok'],
    ['ok', 4.9, 100, 'refuse-creates'],
    ['ok', 1.2, 100, 'read-only'],
    ['read-only', 2.6, 100, 'refuse-creates'],
  ];
  for (const [from, free, total, to] of cases) {
    assert.equal(nextDiskState(from, { free: free * MIB, total: total * MIB }), to, `${from} ${free}/${total}`);
  }
});
