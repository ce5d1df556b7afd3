import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createFakeClock } from '../../../runtime/src/clock/fake-clock.fixture.ts';
import { createWatchPace } from './watch-pace.ts';

test('to few readers each event goes out in the moment it is published', async () => {
  const clock = createFakeClock();
  const pace = createWatchPace(clock);
  let written = 0;
  for (let event = 1; event <= 3; event++) {
    for (let reader = 0; reader < 20; reader++) pace.ask(() => written++);
    await clock.advance(0);
    assert.equal(written, 20 * event);
  }
});

test('to many readers what is published within the pause goes out together', async () => {
  const clock = createFakeClock();
  const pace = createWatchPace(clock);
  let written = 0;
  const askAll = (): void => {
    for (let reader = 0; reader < 1000; reader++) pace.ask(() => written++);
  };
  askAll();
  await clock.advance(0);
  assert.equal(written, 1000);
  askAll();
  await clock.advance(49);
  assert.equal(written, 1000);
  await clock.advance(1);
  assert.equal(written, 2000);
  // After a rest nobody waits.
  await clock.advance(50);
  askAll();
  await clock.advance(0);
  assert.equal(written, 3000);
});

test('readers of the same frames are handed the same bytes, others their own', async () => {
  const pace = createWatchPace(createFakeClock());
  const [a, b, c] = [1, 2, 3].map((byte) => Uint8Array.of(byte, 0)) as [Uint8Array, Uint8Array, Uint8Array];
  const first = pace.join([a, b]);
  assert.deepEqual([...first], [1, 0, 2, 0]);
  assert.equal(pace.join([a, b]), first);
  assert.deepEqual([...pace.join([a, c])], [1, 0, 3, 0]);
  assert.equal(pace.join([a]), a);
});
