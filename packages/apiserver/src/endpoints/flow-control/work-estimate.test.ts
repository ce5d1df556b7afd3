import assert from 'node:assert/strict';
import { test } from 'node:test';
import { listWork, maxSeatsOf, writeWork } from './work-estimate.ts';

const LISTS: readonly (readonly [name: string, list: Partial<Parameters<typeof listWork>[0]>, seats: number])[] = [
  ['nothing is stored', { objects: 0 }, 1],
  ['a small resource', { objects: 99, averageBytes: 1000 }, 1],
  ['a seat for each 100 kB', { objects: 101, averageBytes: 1000 }, 2],
  ['what is loaded at once is bounded', { objects: 50_000, averageBytes: 2000 }, 10],
  ['a page', { objects: 50_000, averageBytes: 1000, limit: 500 }, 5],
  ['a limit beyond what there is', { objects: 200, averageBytes: 1000, limit: 500 }, 2],
  ['one object', { objects: 50_000, averageBytes: 1000, single: true }, 1],
];
for (const [name, list, seats] of LISTS) {
  test(`listWork(): ${name}`, () => {
    const work = listWork({ objects: 0, averageBytes: 0, limit: 0, single: false, ...list }, 0);
    assert.deepEqual(work, { seats, afterMs: 0 });
  });
}

test('listWork() stays within what the level allows one request', () => {
  assert.equal(listWork({ objects: 5000, averageBytes: 1000, limit: 0, single: false }, 4).seats, 4);
});

const WRITES: readonly (readonly [watchers: number, maxOfLevel: number, seats: number, afterMs: number])[] = [
  [0, 0, 1, 0],
  [9, 0, 1, 0],
  [10, 0, 1, 5],
  [25, 0, 3, 5],
  [100, 0, 10, 5],
  [1000, 0, 10, 50],
  [1000, 5, 5, 100],
];
for (const [watchers, maxOfLevel, seats, afterMs] of WRITES) {
  test(`writeWork(): ${watchers} watchers in a level that allows ${maxOfLevel || 'any'}`, () => {
    assert.deepEqual(writeWork(watchers, maxOfLevel), { seats, afterMs });
  });
}

test('maxSeatsOf() is 15 % of a level, and no more than a hand leaves to others', () => {
  assert.deepEqual(
    [maxSeatsOf(245, 6), maxSeatsOf(49, 6), maxSeatsOf(25, 4), maxSeatsOf(1, 6), maxSeatsOf(100, 0)],
    [37, 8, 4, 1, 0],
  );
});
