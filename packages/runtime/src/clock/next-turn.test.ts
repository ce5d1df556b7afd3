import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as immediate } from 'node:timers/promises';
import { nextTurn } from './next-turn.ts';

// S-330: Of many works in pieces one goes on in each turn of the event loop.
test('of many who wait one goes on in each turn, in the order of their coming', async () => {
  const perTurn: number[][] = [];
  let turn: number[] = [];
  const works = Array.from({ length: 3 }, async (_, i) => {
    for (let piece = 0; piece < 2; piece++) {
      await nextTurn();
      turn.push(i);
    }
  });
  for (let i = 0; i < 8; i++) {
    await immediate();
    perTurn.push(turn);
    turn = [];
  }
  await Promise.all(works);
  assert.deepEqual(
    perTurn.filter((done) => done.length > 0),
    [[0], [1], [2], [0], [1], [2]],
  );
});

test('thousands may wait', async () => {
  let done = 0;
  await Promise.all(Array.from({ length: 3000 }, () => nextTurn().then(() => done++)));
  assert.equal(done, 3000);
});
