import assert from 'node:assert/strict';
import { test } from 'node:test';
import { constants, crc32, deflateRawSync, gunzipSync } from 'node:zlib';
import fc from 'fast-check';
import { type GzipBlock, gzipBlock, gzipOf, storedBlock } from './gzip-blocks.ts';

const deflated = (bytes: Uint8Array): GzipBlock =>
  gzipBlock({
    bytes: deflateRawSync(bytes, { finishFlush: constants.Z_SYNC_FLUSH }),
    size: bytes.length,
    crc: crc32(bytes),
  });

test('gzipOf() joins deflated and stored blocks into what any gunzip reads, checksum and all', () => {
  const piece = fc.record({
    bytes: fc.uint8Array({ maxLength: 400 }),
    times: fc.integer({ min: 1, max: 300 }),
    stored: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 8 }), (pieces) => {
      const texts = pieces.map(({ bytes, times }) => Buffer.concat(Array.from({ length: times }, () => bytes)));
      const blocks = texts.map((text, i) => (pieces[i]!.stored ? storedBlock(text) : deflated(text)));
      assert.deepEqual(gunzipSync(Buffer.concat(gzipOf(blocks))), Buffer.concat(texts));
    }),
    { numRuns: 200 },
  );
});

test('a block can stand in many bodies, and more than once in one', () => {
  const block = deflated(Buffer.from('{"name":"a"}'));
  const comma = storedBlock(Buffer.from(','));
  assert.equal(gunzipSync(Buffer.concat(gzipOf([block, comma, block]))).toString(), '{"name":"a"},{"name":"a"}');
  assert.equal(gunzipSync(Buffer.concat(gzipOf([block]))).toString(), '{"name":"a"}');
});

test('gunzip refuses a body whose block has another checksum', () => {
  const block = { ...deflated(Buffer.from('text')), crc: 1 };
  assert.throws(() => gunzipSync(Buffer.concat(gzipOf([block]))), /incorrect data check/);
});
