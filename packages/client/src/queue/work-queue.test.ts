import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { createFakeClock } from '../../../runtime/src/clock/fake-clock.fixture.ts';
import { nextTurn } from '../../../runtime/src/clock/next-turn.ts';
import { createDeferred, type Deferred } from '../../../runtime/src/signal/deferred.ts';
import { createWorkQueue } from './work-queue.ts';

/** A queue whose runs end when asked to. */
function harness(concurrency = 1) {
  const clock = createFakeClock();
  const runs: string[] = [];
  const open = new Map<string, Deferred<void>>();
  const queue = createWorkQueue({
    clock,
    concurrency,
    random: () => 0,
    run: (key) => {
      assert.ok(!open.has(key), `${key} runs twice at once`);
      runs.push(key);
      const deferred = createDeferred();
      open.set(key, deferred);
      return deferred.promise;
    },
  });
  const finish = async (key: string): Promise<void> => {
    const deferred = open.get(key);
    assert.ok(deferred, `${key} does not run`);
    open.delete(key);
    deferred.resolve();
    await clock.advance(0);
  };
  return { clock, queue, runs, open, finish };
}

test('keys gather until start(), equal ones once, and run in order of arrival', async () => {
  const { queue, runs, finish } = harness();
  for (const key of ['a', 'b', 'a']) queue.add(key);
  assert.deepEqual(runs, []);
  queue.start();
  assert.deepEqual(runs, ['a']);
  await finish('a');
  assert.deepEqual(runs, ['a', 'b']);
  await finish('b');
  assert.deepEqual(runs, ['a', 'b']);
});

test('a key added while it runs is held, and runs once more after', async () => {
  const { queue, runs, finish } = harness(4);
  queue.start();
  queue.add('a');
  queue.add('a');
  queue.add('a');
  assert.deepEqual(runs, ['a']);
  await finish('a');
  assert.deepEqual(runs, ['a', 'a']);
  await finish('a');
  assert.deepEqual(runs, ['a', 'a']);
});

test('addAfter() waits, the earliest time wins, and add() does not wait', async () => {
  const { clock, queue, runs, finish } = harness(4);
  queue.start();
  queue.addAfter('a', 100);
  queue.addAfter('a', 50);
  queue.addAfter('a', 200);
  queue.addAfter('b', 1000);
  await clock.advance(49);
  assert.deepEqual(runs, []);
  await clock.advance(1);
  assert.deepEqual(runs, ['a']);
  await finish('a');
  queue.add('b');
  await finish('b');
  await clock.advance(5000);
  assert.deepEqual(runs, ['a', 'b']);
});

test('addRateLimited() doubles the pause of each key from 5 ms to 1000 s; forget() begins anew', async () => {
  const { queue } = harness();
  const pauses = Array.from({ length: 20 }, () => queue.addRateLimited('a'));
  assert.deepEqual(pauses.slice(0, 5), [5, 10, 20, 40, 80]);
  assert.equal(pauses.at(-1), 1_000_000);
  assert.equal(queue.addRateLimited('b'), 5);
  queue.forget('a');
  assert.equal(queue.addRateLimited('a'), 5);
});

test('stop() starts nothing more and waits for what runs', async () => {
  const { clock, queue, runs, finish } = harness();
  queue.start();
  for (const key of ['a', 'b']) queue.add(key);
  queue.addAfter('c', 10);
  let stopped = false;
  const stopping = queue.stop().then(() => {
    stopped = true;
  });
  await clock.advance(100);
  queue.add('d');
  assert.equal(stopped, false);
  await finish('a');
  await stopping;
  assert.deepEqual(runs, ['a']);
});

test('whatever is added, no key is lost, none runs twice at once, and the bound holds', async () => {
  const step = fc.oneof(
    fc.record({ type: fc.constant('add' as const), key: fc.constantFrom('a', 'b', 'c') }),
    fc.record({ type: fc.constant('after' as const), key: fc.constantFrom('a', 'b', 'c'), ms: fc.nat(100) }),
    fc.record({ type: fc.constant('advance' as const), ms: fc.nat(60) }),
    fc.record({ type: fc.constant('finish' as const) }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), fc.integer({ min: 1, max: 3 }), async (steps, concurrency) => {
      const { clock, queue, runs, open, finish } = harness(concurrency);
      queue.start();
      /** Runs of a key that had begun when it was last added: one more must come. */
      const owed = new Map<string, number>();
      const begun = (key: string): number => runs.filter((one) => one === key).length;
      for (const one of steps) {
        if (one.type === 'add' || one.type === 'after') owed.set(one.key, begun(one.key));
        if (one.type === 'add') queue.add(one.key);
        if (one.type === 'after') queue.addAfter(one.key, one.ms);
        if (one.type === 'advance') await clock.advance(one.ms);
        if (one.type === 'finish' && open.size > 0) await finish([...open.keys()][0]!);
        assert.ok(open.size <= concurrency);
      }
      await clock.advance(1000);
      while (open.size > 0) await finish([...open.keys()][0]!);
      for (const [key, before] of owed) assert.ok(begun(key) >= before, `${key} was lost`);
      for (const key of owed.keys()) assert.ok(begun(key) > 0);
    }),
    { numRuns: 200 },
  );
});

test('where a turn of the event loop has gone on for long, the next key waits for the next turn', async () => {
  const runs: string[] = [];
  const clock = { ...createFakeClock(), turnIsLong: () => runs.length % 3 === 2 };
  const queue = createWorkQueue({ clock, run: async (key) => void runs.push(key) });
  for (const key of ['a', 'b', 'c', 'd']) queue.add(key);
  queue.start();
  for (let i = 0; i < 50; i++) await Promise.resolve();
  assert.deepEqual(runs, ['a', 'b']);
  clock.turnIsLong = () => false;
  for (let i = 0; i < 50 && runs.length < 4; i++) await nextTurn();
  assert.deepEqual(runs, ['a', 'b', 'c', 'd']);
});
