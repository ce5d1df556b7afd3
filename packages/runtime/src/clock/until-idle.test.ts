import assert from 'node:assert/strict';
import { test } from 'node:test';
import { untilIdle } from './clock.ts';
import { createFakeClock } from './fake-clock.fixture.ts';
import { nextTurn } from './next-turn.ts';

const LIMIT_MS = 1000;

/** A clock on which each look at it takes time while the process is busy. */
function harness() {
  const clock = createFakeClock();
  const load = { isBusy: true };
  let spentMs = 0;
  const monotonic = (): number => {
    if (load.isBusy) spentMs += 5;
    return clock.monotonic() + spentMs;
  };
  const stop = new AbortController();
  const state = { isOver: false };
  void untilIdle({ monotonic, sleep: clock.sleep }, LIMIT_MS, stop.signal).then(() => {
    state.isOver = true;
  });
  const pass = async (): Promise<void> => {
    for (let turn = 0; turn < 3; turn++) await nextTurn();
    await clock.advance(20);
  };
  return { load, stop, state, pass, spent: () => clock.monotonic() + spentMs };
}

test('what nobody waits for goes on once others have nothing to do', async () => {
  const { load, state, pass } = harness();
  for (let i = 0; i < 10; i++) await pass();
  assert.equal(state.isOver, false);
  load.isBusy = false;
  for (let i = 0; i < 2; i++) await pass();
  assert.equal(state.isOver, true);
});

// S-1442
test('it goes on after its limit, however busy others are', async () => {
  const { state, pass, spent } = harness();
  while (spent() < LIMIT_MS - 40) await pass();
  assert.equal(state.isOver, false);
  for (let i = 0; i < 4; i++) await pass();
  assert.equal(state.isOver, true);
});

test('it goes on when the process stops', async () => {
  const { stop, state, pass } = harness();
  await pass();
  stop.abort();
  await pass();
  assert.equal(state.isOver, true);
});
