import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turnEnds } from 'node:timers/promises';
import { createFakeClock } from '../../../runtime/src/clock/fake-clock.fixture.ts';
import { type ApiRequest, type ApiResponse, NEVER } from '../../../runtime/src/http/seam.ts';
import { BOUND_MS, createClientsFirst, QUIET_MS } from './clients-first.ts';

const REQUEST = {} as ApiRequest;
const ANSWER: ApiResponse = { status: 200, headers: {} };

function begin() {
  const clock = createFakeClock();
  const clientsFirst = createClientsFirst(clock);
  const open: ((response: ApiResponse) => void)[] = [];
  const serve = clientsFirst.before(() => new Promise((resolve) => open.push(resolve)));
  const begun: string[] = [];
  return {
    begun,
    ask: () => void serve(REQUEST),
    answer: () => open.shift()?.(ANSWER),
    start: (name: string, signal = NEVER) => clientsFirst.turn(signal).then(() => void begun.push(name)),
    /** Time passes, with turns of the event loop in it. */
    async pass(ms: number) {
      for (let left = ms; left > 0; left -= QUIET_MS) {
        await clock.advance(Math.min(left, QUIET_MS));
        await turnEnds();
        await turnEnds();
        await clock.advance(0);
      }
    },
  };
}

// S-1441: What starts beside the API server waits while clients are being answered, for two seconds at most.
test('what starts beside the server begins at once and in order when no client asks', async () => {
  const { begun, start } = begin();
  await Promise.all(['a', 'b', 'c'].map((name) => start(name)));
  assert.deepEqual(begun, ['a', 'b', 'c']);
});

// S-1441
test('what starts beside the server waits until clients were answered and ask no more', async () => {
  const { begun, ask, answer, start, pass } = begin();
  ask();
  ask();
  void start('a');
  void start('b');
  await pass(100);
  answer();
  await pass(100);
  assert.deepEqual(begun, []);
  answer();
  // The client has more to ask, a little later.
  await pass(QUIET_MS - 1);
  ask();
  await pass(100);
  assert.deepEqual(begun, []);
  answer();
  await pass(5 * QUIET_MS);
  assert.deepEqual(begun, ['a', 'b']);
});

// S-1441
test('what starts beside the server waits for no longer than its bound, however many clients ask', async () => {
  const { begun, ask, answer, start, pass } = begin();
  ask();
  void start('a');
  void start('b');
  const next = () => {
    ask();
    answer();
  };
  for (let passed = 0; passed < BOUND_MS - QUIET_MS; passed += QUIET_MS) {
    next();
    await pass(QUIET_MS);
  }
  assert.deepEqual(begun, []);
  for (let i = 0; i < 4; i++) {
    next();
    await pass(QUIET_MS);
  }
  assert.deepEqual(begun, ['a', 'b']);
});

// S-1441
test('what waits for clients goes on when the process stops, and finds its signal aborted', async () => {
  const { begun, ask, start, pass } = begin();
  const stop = new AbortController();
  ask();
  void start('a', stop.signal);
  await pass(100);
  assert.deepEqual(begun, []);
  stop.abort();
  await pass(QUIET_MS);
  assert.deepEqual(begun, ['a']);
});

// S-1441
test('a request that fails is over for those who wait', async () => {
  const clock = createFakeClock();
  const clientsFirst = createClientsFirst(clock);
  await assert.rejects(clientsFirst.before(() => Promise.reject(new Error('cut off')))(REQUEST), /cut off/);
  await clock.advance(QUIET_MS);
  await clientsFirst.turn(NEVER);
});
