import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  createFrameReader,
  decodeHeaders,
  encodeFrame,
  encodeHeaders,
  MAX_FRAME,
  type SpdyFrame,
} from './spdy-frames.ts';

const stream = fc.integer({ min: 1, max: 0x7fff_ffff });
const word = fc.integer({ min: 0, max: 0xffff_ffff });
const bytes = fc.uint8Array({ maxLength: 300 });
const frames: fc.Arbitrary<SpdyFrame> = fc.oneof(
  fc.record({ type: fc.constant('data' as const), stream, fin: fc.boolean(), bytes }),
  fc.record({
    type: fc.constant('syn-stream' as const),
    stream,
    fin: fc.boolean(),
    block: bytes,
  }),
  fc.record({
    type: fc.constantFrom('syn-reply' as const, 'headers' as const),
    stream,
    fin: fc.boolean(),
    block: bytes,
  }),
  fc.record({ type: fc.constant('rst-stream' as const), stream, status: word }),
  fc.record({
    type: fc.constant('settings' as const),
    values: fc
      .array(fc.tuple(fc.integer({ min: 1, max: 0xff_ffff }), word), { maxLength: 8 })
      .map((list) => new Map(list)),
  }),
  fc.record({ type: fc.constant('ping' as const), id: word }),
  fc.record({
    type: fc.constant('goaway' as const),
    lastStream: fc.integer({ min: 0, max: 0x7fff_ffff }),
    status: word,
  }),
  fc.record({
    type: fc.constant('window-update' as const),
    stream: fc.integer({ min: 0, max: 0x7fff_ffff }),
    delta: fc.integer({ min: 1, max: 0x7fff_ffff }),
  }),
);

/** Buffers and plain arrays of the same bytes are alike here. */
const plain = (list: readonly SpdyFrame[]): unknown[] =>
  list.map((frame) =>
    Object.fromEntries(
      Object.entries(frame).map(([key, value]) => [
        key,
        value instanceof Uint8Array ? Buffer.from(value).toString('hex') : value,
      ]),
    ),
  );

test('frames are read as they were written, however the bytes are cut', () => {
  fc.assert(
    fc.property(fc.array(frames, { maxLength: 8 }), fc.integer({ min: 1, max: 50 }), (list, cut) => {
      const whole = Buffer.concat(list.map(encodeFrame));
      const reader = createFrameReader();
      const read: SpdyFrame[] = [];
      for (let at = 0; at < whole.length; at += cut) read.push(...reader(whole.subarray(at, at + cut)));
      assert.deepEqual(plain(read), plain(list));
    }),
  );
});

test('header blocks are read as they were written, and no other bytes are taken for one', () => {
  const text = fc.string({
    unit: fc.integer({ min: 0, max: 255 }).map((code) => String.fromCharCode(code)),
    maxLength: 40,
  });
  const headers = fc
    .array(
      fc.tuple(
        text.filter((name) => name !== ''),
        text,
      ),
      { maxLength: 10 },
    )
    .map((list) => new Map(list));
  fc.assert(fc.property(headers, (map) => assert.deepEqual(decodeHeaders(encodeHeaders(map)), map)));
  fc.assert(
    fc.property(headers, fc.nat(), (map, at) => {
      const block = encodeHeaders(map);
      assert.throws(() => decodeHeaders(block.subarray(0, at % block.length)), RangeError);
      assert.throws(() => decodeHeaders(Buffer.concat([block, Buffer.alloc((at % 7) + 1)])), RangeError);
    }),
  );
});

test('any bytes are frames or an error, and never something else', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 10 }), (pieces) => {
      const reader = createFrameReader();
      try {
        for (const piece of pieces) for (const frame of reader(piece)) assert.deepEqual(plain([frame]).length, 1);
      } catch (error) {
        assert.ok(error instanceof RangeError, String(error));
      }
    }),
    { numRuns: 500 },
  );
});

const malformed: readonly (readonly [string, string])[] = [
  ['SPDY/2', '80020001000000020000'],
  ['data of stream 0', '0000000000000000'],
  ['a stream 0', '800300010000000a00000000000000000000'],
  ['a stream without all its fields', '8003000100000009000000010000000000'],
  ['a reset without a reason', '800300030000000400000001'],
  ['a ping of eight bytes', '80030006000000080000000100000000'],
  ['settings that say more than there are', '8003000400000004000000ff'],
  ['settings cut off', '80030004000000020000'],
  ['a window that does not grow', '80030009000000080000000000000000'],
  ['a goaway cut off', '800300070000000400000000'],
];
for (const [what, hex] of malformed) {
  test(`refused: ${what}`, () => {
    assert.throws(() => createFrameReader()(Buffer.from(hex, 'hex')), RangeError);
  });
}

test('a frame beyond the bound is refused when its head is read, one of a type there is not is left out', () => {
  const head = Buffer.alloc(8);
  head.writeUInt32BE(1, 0);
  head.writeUInt32BE(MAX_FRAME + 1, 4);
  assert.throws(() => createFrameReader()(head), /too long/);
  head.writeUInt32BE(MAX_FRAME, 4);
  assert.deepEqual(createFrameReader()(head), []);
  const unknown = Buffer.from('8003000b0000000401020304', 'hex');
  const ping: SpdyFrame = { type: 'ping', id: 1 };
  assert.deepEqual(createFrameReader()(Buffer.concat([unknown, encodeFrame(ping)])), [ping]);
});
