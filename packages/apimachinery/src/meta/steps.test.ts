import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { cloneJson, cloneSteps } from './deep-clone.ts';
import { encodeJsonSteps } from './json-steps.ts';
import { compactSteps, prettySteps } from './pretty-steps.ts';
import { sortedSteps } from './sort-steps.ts';
import { finish, inPieces, Pace, type Steps } from './steps.ts';

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

test('a pace says when it is time to stop, by the weight of what was done', () => {
  const pace = new Pace();
  const stops = Array.from({ length: 10_000 }, () => pace.due()).filter(Boolean).length;
  assert.equal(stops, 5);
  assert.equal(pace.due(5000), true);
  assert.equal(pace.due(), false);
});

test('a clone in steps is the clone, and shares nothing', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 5 }), (value) => {
      const copy = finish(cloneSteps({ value }, new Pace()));
      assert.deepEqual(copy, cloneJson({ value }));
    }),
  );
  const inner = { list: Array.from({ length: 20 }, () => ({ a: {} })) };
  const copy = finish(cloneSteps(inner, new Pace())) as typeof inner;
  assert.notEqual(copy.list[0]!.a, inner.list[0]!.a);
});

test('what the work throws is thrown, and nothing is done after it', async () => {
  const failing = function* (): Steps<void> {
    yield;
    throw new RangeError('no');
  };
  assert.throws(() => finish(failing()), RangeError);
  await assert.rejects(() => inPieces(failing(), async () => {}), RangeError);
});

// S-232
test('JSON in steps is the JSON that JSON.stringify writes', () => {
  const value = fc.anything({
    maxDepth: 6,
    maxKeys: 12,
    key: fc.oneof(fc.string(), fc.constantFrom('__proto__', 'toString', '0', 'a"b')),
    values: [fc.string(), fc.double(), fc.boolean(), fc.constant(null), fc.constant(undefined)],
  });
  fc.assert(
    fc.property(fc.array(value, { maxLength: 12 }), (list) => {
      const text = JSON.stringify({ list });
      // Halves of characters have no UTF-8: they come out as U+FFFD, as from any encoder.
      assert.equal(
        new TextDecoder().decode(finish(encodeJsonSteps({ list }))),
        new TextDecoder().decode(new TextEncoder().encode(text)),
      );
    }),
    { numRuns: 300 },
  );
});

test('large lists and objects are written over many steps', () => {
  const many = Object.fromEntries(Array.from({ length: 20_000 }, (_, at) => [`k${at}`, at]));
  const object = { many, list: Array.from({ length: 20_000 }, (_, at) => ({ at, deep: { list: [[at]] } })), none: {} };
  const work = encodeJsonSteps(object);
  let steps = 0;
  let step = work.next();
  for (; !step.done; step = work.next()) steps++;
  assert.equal(new TextDecoder().decode(step.value), JSON.stringify(object));
  assert.ok(steps >= 20, `${steps} steps`);
});

test('indented JSON and sorting in steps are what they are in one go', () => {
  const value = {
    list: Array.from({ length: 2000 }, (_, at) =>
      at % 3 === 0 ? { at, text: 'a\nb', none: null, empty: [] } : `t${at}`,
    ),
    map: Object.fromEntries(Array.from({ length: 2000 }, (_, at) => [`k${at}`, { a: { b: [at, {}] } }])),
    nothing: undefined,
  };
  const textOf = (parts: readonly Uint8Array[]): string => Buffer.concat(parts).toString();
  assert.equal(textOf(finish(prettySteps(value))), JSON.stringify(value, null, 2));
  assert.equal(textOf(finish(compactSteps(value))), JSON.stringify(value));
  const numbers = Array.from({ length: 20_000 }, (_, at) => ({ key: (at * 7919) % 101, at }));
  const order = (a: { key: number }, b: { key: number }): number => a.key - b.key;
  assert.deepEqual(finish(sortedSteps(numbers, order)), [...numbers].sort(order));
  assert.deepEqual(finish(sortedSteps([], order)), []);
});
