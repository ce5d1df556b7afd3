import assert from 'node:assert/strict';
import { test } from 'node:test';
import { getOrInsert } from './get-or-insert.ts';
import { lowerBound } from './lower-bound.ts';

test('getOrInsert() makes a value once for each key', () => {
  const lists = new Map<string, number[]>();
  for (const [key, value] of [
    ['a', 1],
    ['b', 2],
    ['a', 3],
  ] as const)
    getOrInsert(lists, key, () => []).push(value);
  assert.deepEqual(Object.fromEntries(lists), { a: [1, 3], b: [2] });
  const known = new WeakMap<object, number>();
  const key = {};
  assert.equal(
    getOrInsert(known, key, () => 0),
    0,
  );
  assert.equal(
    getOrInsert(known, key, () => 1),
    0,
  );
});

test('lowerBound() gives the first index that is not below', () => {
  const items = [1, 3, 3, 5];
  const at = (bound: number): number => lowerBound(items.length, (i) => items[i]! < bound);
  assert.deepEqual([0, 1, 2, 3, 4, 5, 6].map(at), [0, 0, 1, 1, 3, 3, 4]);
  assert.equal(
    lowerBound(0, () => true),
    0,
  );
});
