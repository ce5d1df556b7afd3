import assert from 'node:assert/strict';
import { test } from 'node:test';
import { abortable, aborted } from './abortable.ts';
import { createDeferred } from './deferred.ts';
import { createLinkedController } from './linked-controller.ts';

test('abortable() follows the promise, or the signal when that is first', async () => {
  const never = new Promise<void>(() => {});
  const stop = new AbortController();
  assert.equal(await abortable(Promise.resolve(1), stop.signal), 1);
  await assert.rejects(abortable(Promise.reject(new Error('own')), stop.signal), /own/);
  const waiting = assert.rejects(abortable(never, stop.signal), /stop/);
  stop.abort(new Error('stop'));
  await waiting;
  await assert.rejects(abortable(Promise.resolve(1), stop.signal), /stop/);
  await aborted(stop.signal);
});

test('createLinkedController() aborts with the first parent, and lets go of them', () => {
  const one = new AbortController();
  const two = new AbortController();
  const linked = createLinkedController(one.signal, undefined, two.signal);
  const free = createLinkedController(one.signal, two.signal);
  free.release();
  two.abort('because');
  assert.equal(linked.signal.reason, 'because');
  assert.equal(free.signal.aborted, false);
  assert.equal(createLinkedController(two.signal).signal.aborted, true);
  const own = createLinkedController(one.signal);
  own.abort('own');
  assert.equal(one.signal.aborted, false);
});

test('a deferred that is rejected before anyone waits is no unhandled rejection', async () => {
  const deferred = createDeferred<number>();
  deferred.reject(new Error('early'));
  await new Promise((resolve) => setImmediate(resolve));
  await assert.rejects(deferred.promise, /early/);
});
