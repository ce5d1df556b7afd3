import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FairQueue } from './fair-queue.ts';

test('owners take turns, each in its own order', () => {
  const queue = new FairQueue<string>();
  for (const entry of ['a1', 'a2', 'a3', 'b1', 'c1', 'c2']) queue.push(entry[0]!, entry);
  assert.equal(queue.size, 6);
  const order: (string | undefined)[] = [queue.shift(), queue.shift()];
  queue.push('d', 'd1');
  while (queue.size > 0) order.push(queue.shift());
  assert.deepEqual(order, ['a1', 'b1', 'c1', 'a2', 'd1', 'c2', 'a3']);
  assert.equal(queue.shift(), undefined);
});
