import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createFakeClock } from '../../../runtime/src/clock/fake-clock.fixture.ts';
import { createExpectations } from './expectations.ts';

test('a key is satisfied when everything expected was seen or has failed', () => {
  const expectations = createExpectations(createFakeClock());
  assert.equal(expectations.satisfied('k'), true);
  expectations.expectCreations('k', 2);
  expectations.expectDeletions('k', ['u1', 'u2']);
  expectations.observeCreation('k');
  expectations.creationFailed('k');
  expectations.observeDeletion('k', 'u1');
  expectations.observeDeletion('k', 'somebody else');
  assert.equal(expectations.satisfied('k'), false);
  assert.equal(expectations.satisfied('other'), true);
  expectations.deletionFailed('k', 'u2');
  assert.equal(expectations.satisfied('k'), true);
  // What was not expected changes nothing.
  expectations.observeCreation('k');
  expectations.expectCreations('k', 1);
  assert.equal(expectations.satisfied('k'), false);
  expectations.forget('k');
  assert.equal(expectations.satisfied('k'), true);
});

test('an observation that never comes expires', async () => {
  const clock = createFakeClock();
  const expectations = createExpectations(clock);
  expectations.expectCreations('k', 1);
  await clock.advance(299_000);
  assert.equal(expectations.satisfied('k'), false);
  await clock.advance(1_000);
  assert.equal(expectations.satisfied('k'), true);
});
