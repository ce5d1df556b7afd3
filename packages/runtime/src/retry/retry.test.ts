import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { createFakeClock } from '../clock/fake-clock.fixture.ts';
import { backoffDelay, createBackoff } from './backoff.ts';
import { retry } from './retry.ts';

test('backoffDelay() grows, stays within its bounds and is never no number', () => {
  const policy = { baseMs: 5, maxMs: 1_000_000, jitter: 0.5 };
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 100_000 }),
      fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true }),
      (n, r) => {
        const delay = backoffDelay(policy, n, () => r);
        assert.ok(delay >= 5 && delay <= 1_000_000, String(delay));
        assert.ok(backoffDelay(policy, n + 1, () => 0) >= backoffDelay(policy, n, () => 0));
      },
    ),
  );
  const plain = [1, 2, 3, 4].map((n) => backoffDelay(policy, n, () => 0));
  assert.deepEqual(plain, [5, 10, 20, 40]);
});

test('createBackoff() begins anew after reset()', () => {
  const backoff = createBackoff({ baseMs: 100, maxMs: 1000 }, () => 0);
  assert.deepEqual([backoff.next(), backoff.next()], [100, 200]);
  backoff.reset();
  assert.equal(backoff.next(), 100);
});

test('retry() tries again until it works, gives up, or is asked to stop', async () => {
  const clock = createFakeClock();
  const stop = new AbortController();
  const options = { clock, signal: stop.signal, policy: { baseMs: 100, maxMs: 1000, jitter: 0 }, attempts: 3 };
  let tries = 0;
  const works = retry(async () => {
    if (++tries < 3) throw new Error('not yet');
    return tries;
  }, options);
  await clock.advance(300);
  assert.equal(await works, 3);

  const fails = retry(async (attempt) => Promise.reject(new Error(`attempt ${attempt}`)), options);
  const seen = assert.rejects(fails, /attempt 3/);
  await clock.advance(1000);
  await seen;
  await assert.rejects(
    retry(async () => Promise.reject(new Error('final')), { ...options, retryable: () => false }),
    /final/,
  );

  const cut = retry(async () => Promise.reject(new Error('never')), options);
  const stopped = assert.rejects(cut, /enough/);
  await clock.advance(50);
  stop.abort(new Error('enough'));
  await stopped;
});
