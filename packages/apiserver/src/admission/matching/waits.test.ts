import assert from 'node:assert/strict';
import { test } from 'node:test';
import { settle, type Waits, waitFor } from './waits.ts';

function* sum(...parts: (number | Promise<number>)[]): Waits<number> {
  let total = 0;
  for (const part of parts) total += yield* waitFor(part);
  return total;
}

test('work that waits for nothing is done at once', () => {
  assert.equal(settle(sum(1, 2, 3)), 6);
});

test('work that waits goes on with what came', async () => {
  const outcome = settle(sum(1, Promise.resolve(2), Promise.resolve(3)));
  assert.ok(outcome instanceof Promise);
  assert.equal(await outcome, 6);
});

test('what is rejected is thrown where it was waited for', async () => {
  function* careful(): Waits<string> {
    try {
      return String(yield* waitFor(Promise.reject<number>(new Error('gone'))));
    } catch (error) {
      return `caught ${(error as Error).message}`;
    }
  }
  assert.equal(await settle(careful()), 'caught gone');
  await assert.rejects(async () => settle(sum(Promise.reject(new Error('gone')))), /gone/);
  function* failing(): Waits<void> {
    yield* waitFor<undefined>(undefined);
    throw new Error('at once');
  }
  assert.throws(() => settle(failing()), /at once/);
});
