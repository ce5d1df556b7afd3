import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as immediate } from 'node:timers/promises';
import { nextTurn } from './next-turn.ts';

const WORKS = 3;

/** Three works of two pieces of so many milliseconds: which of them went on in each turn of the event loop. */
async function turnsOf(pieceMs: number): Promise<number[][]> {
  const perTurn: number[][] = [];
  let turn: number[] = [];
  const works = Array.from({ length: WORKS }, async (_, i) => {
    for (let piece = 0; piece < 2; piece++) {
      await nextTurn();
      const began = performance.now();
      while (performance.now() - began < pieceMs);
      turn.push(i);
    }
  });
  for (let i = 0; i < 3 * WORKS; i++) {
    await immediate();
    perTurn.push(turn);
    turn = [];
  }
  await Promise.all(works);
  return perTurn.filter((done) => done.length > 0);
}

// S-330: Of many works in long pieces one goes on in each turn of the event loop.
test('of many who wait with long pieces one goes on in each turn, in the order of their coming', async () => {
  assert.deepEqual(await turnsOf(3), [[0], [1], [2], [0], [1], [2]]);
});

// S-1480: Short pieces of many works share a turn of the event loop, each work one of its pieces.
test('of those with short pieces several go on in a turn, each once', async () => {
  const turns = await turnsOf(0);
  assert.deepEqual(turns.flat(), [0, 1, 2, 0, 1, 2]);
  assert.ok(turns.length < 6, JSON.stringify(turns));
  for (const turn of turns) assert.equal(new Set(turn).size, turn.length, JSON.stringify(turns));
});

test('thousands may wait', async () => {
  let done = 0;
  await Promise.all(Array.from({ length: 3000 }, () => nextTurn().then(() => done++)));
  assert.equal(done, 3000);
});
