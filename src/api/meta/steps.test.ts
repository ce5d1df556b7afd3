import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { stringifySteps } from './json-steps.ts';
import { finish, inPieces, type Steps } from './steps.ts';

function* counting(to: number): Steps<number> {
  let sum = 0;
  for (let at = 1; at <= to; at++) {
    sum += at;
    yield;
  }
  return sum;
}

test('steps come to the same in one go and in pieces, with a pause after each', async () => {
  let pauses = 0;
  const pause = async (): Promise<void> => void pauses++;
  assert.equal(finish(counting(10)), 55);
  assert.equal(await inPieces(counting(10), pause), 55);
  assert.equal(pauses, 10);
});

test('what the work throws is thrown, and nothing is done after it', async () => {
  const failing = function* (): Steps<void> {
    yield;
    throw new RangeError('no');
  };
  assert.throws(() => finish(failing()), RangeError);
  await assert.rejects(() => inPieces(failing(), async () => {}), RangeError);
});

test('JSON in steps is the JSON that JSON.stringify writes', () => {
  const value = fc.anything({
    maxDepth: 6,
    maxKeys: 12,
    key: fc.oneof(fc.string(), fc.constantFrom('__proto__', 'toString', '0', 'a"b')),
    values: [fc.string(), fc.double(), fc.boolean(), fc.constant(null), fc.constant(undefined)],
  });
  fc.assert(
    fc.property(fc.array(value, { maxLength: 12 }), (list) => {
      assert.equal(finish(stringifySteps({ list })), JSON.stringify({ list }));
    }),
    { numRuns: 300 },
  );
});

test('large lists and objects are written over many steps', () => {
  const many = Object.fromEntries(Array.from({ length: 20_000 }, (_, at) => [`k${at}`, at]));
  const object = { many, list: Array.from({ length: 20_000 }, (_, at) => ({ at, deep: { list: [[at]] } })), none: {} };
  const work = stringifySteps(object);
  let steps = 0;
  let step = work.next();
  for (; !step.done; step = work.next()) steps++;
  assert.equal(step.value, JSON.stringify(object));
  assert.ok(steps >= 20, `${steps} steps`);
});
