import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { encodeJsonInPieces } from './json-pieces.ts';
import { NO_PAUSE } from './pause.ts';

const decoder = new TextDecoder();

// S-232
test('JSON in pieces is the JSON that JSON.stringify writes', async () => {
  const value = fc.anything({
    maxDepth: 6,
    maxKeys: 12,
    key: fc.oneof(fc.string(), fc.constantFrom('__proto__', 'toString', '0', 'a"b')),
    values: [fc.string(), fc.double(), fc.boolean(), fc.constant(null), fc.constant(undefined)],
  });
  await fc.assert(
    fc.asyncProperty(fc.array(value, { maxLength: 12 }), async (list) => {
      const text = JSON.stringify({ list });
      // Halves of characters have no UTF-8: they come out as U+FFFD, as from any encoder.
      assert.equal(
        decoder.decode(await encodeJsonInPieces({ list }, NO_PAUSE)),
        decoder.decode(new TextEncoder().encode(text)),
      );
    }),
    { numRuns: 300 },
  );
});

test('others are served while large lists and objects are written', async () => {
  const many = Object.fromEntries(Array.from({ length: 20_000 }, (_, at) => [`k${at}`, at]));
  const object = { many, list: Array.from({ length: 20_000 }, (_, at) => ({ at, deep: { list: [[at]] } })), none: {} };
  let pauses = 0;
  const bytes = await encodeJsonInPieces(object, async () => void pauses++);
  assert.equal(decoder.decode(bytes), JSON.stringify(object));
  assert.ok(pauses >= 20, `${pauses} pauses`);
});
