import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createFakeClock } from '../../../../runtime/src/clock/fake-clock.fixture.ts';
import { NEVER } from '../../../../runtime/src/http/seam.ts';
import { MAX_WAIT_MS, PriorityLevel } from './priority-level.ts';

const clock = createFakeClock();
const level = (seats: { total: number; used: number }, limited: object = {}, limit = 0): PriorityLevel => {
  const made = new PriorityLevel('test', { seats, clock });
  made.configure({
    apiVersion: 'v1',
    kind: 'PriorityLevelConfiguration',
    metadata: { name: 'test', uid: 'u' },
    spec: {
      type: 'Limited',
      limited: { limitResponse: { type: 'Queue', queuing: { queues: 1, handSize: 1, ...limited } } },
    },
  });
  made.limit = limit;
  return made;
};

test('a level runs on its own seats and on those that nobody uses', () => {
  const seats = { total: 1, used: 0 };
  const [one, other] = [level(seats, {}, 1), level(seats, {}, 1)];
  assert.equal(one.enter(), true, 'its own');
  assert.equal(one.enter(), false, 'the server has no other');
  assert.equal(other.enter(), true, 'others keep theirs');
  one.leave();
  other.leave();
  assert.equal(seats.used, 0);
});

test('flows take turns, and within a flow who came first goes first', async () => {
  const seats = { total: 1, used: 1 };
  const queued = level(seats, { queueLengthLimit: 10 });
  const order: string[] = [];
  const ask = (flow: string, name: string): Promise<void> =>
    Promise.resolve(queued.wait(flow, NEVER)).then((granted) => {
      if (granted) order.push(name);
    });
  const all = [ask('busy', 'busy 1'), ask('busy', 'busy 2'), ask('busy', 'busy 3'), ask('quiet', 'quiet 1')];
  seats.used = 0;
  for (let i = 0; i < 4; i++) {
    assert.equal(queued.admitOne(), true);
    assert.equal(queued.admitOne(), false, 'one seat, one request');
    queued.leave();
  }
  await Promise.all(all);
  assert.deepEqual(order, ['busy 1', 'quiet 1', 'busy 2', 'busy 3']);
  assert.equal(queued.waiting, 0);
});

test('nobody waits for ever, nor after the client has gone', async () => {
  const queued = level({ total: 0, used: 0 }, { queueLengthLimit: 2 });
  const gone = new AbortController();
  const late = queued.wait('a', NEVER);
  const left = queued.wait('a', gone.signal);
  assert.equal(queued.wait('a', NEVER), false, 'the flow has two places');
  gone.abort();
  assert.equal(await left, false);
  assert.equal(queued.waiting, 1);
  await clock.advance(MAX_WAIT_MS);
  assert.equal(await late, false);
  assert.equal(queued.waiting, 0);
});

test('a level that rejects has no queue', () => {
  const seats = { total: 0, used: 0 };
  const strict = new PriorityLevel('strict', { seats, clock });
  strict.configure({
    apiVersion: 'v1',
    kind: 'PriorityLevelConfiguration',
    metadata: { name: 'strict' },
    spec: { type: 'Limited', limited: { limitResponse: { type: 'Reject' } } },
  });
  assert.equal(strict.enter(), false);
  assert.equal(strict.wait('a', NEVER), false);
});

// S-228
test('who needs many seats is waited for, and who needs more than there are runs alone', async () => {
  const seats = { total: 3, used: 0 };
  const queued = level(seats, { queueLengthLimit: 10 });
  const wide = { seats: 2, afterMs: 0 };
  const order: string[] = [];
  const ask = (name: string, work: typeof wide | undefined) =>
    Promise.resolve(queued.wait(name, NEVER, work)).then(() => order.push(name));
  assert.equal(queued.enter(wide), true);
  assert.equal(queued.enter(wide), false, 'one seat is left');
  const all = [ask('wide', wide), ask('small', undefined)];
  assert.equal(queued.admitOne(), false, 'the small one would fit, it is not its turn');
  queued.leave(wide);
  while (queued.admitOne());
  await Promise.all(all);
  assert.deepEqual(order, ['wide', 'small']);
  assert.deepEqual([queued.running, queued.inUse, seats.used], [2, 3, 3]);
  queued.leave(wide);
  queued.leave();
  const tooWide = { seats: 9, afterMs: 5 };
  assert.equal(queued.enter(tooWide), true);
  assert.equal(queued.enter(), false);
  queued.leave(tooWide);
  assert.deepEqual([queued.running, queued.inUse], [0, 9], 'its seats stay taken for a while');
  queued.release(9);
  assert.equal(seats.used, 0);
});
