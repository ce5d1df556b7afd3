import assert from 'node:assert/strict';
import { Writable } from 'node:stream';
import { test } from 'node:test';
import fc from 'fast-check';
import { BLOCK_BYTES, type BodyOut, sizeOf, writeParts } from './write-body.ts';

/** Takes a write only when the event loop comes round again, and looks at its bytes no sooner. */
function slowOut(): { out: BodyOut; writes: number[]; received: () => Buffer; finished: Promise<void> } {
  const taken: Buffer[] = [];
  const writes: number[] = [];
  const out = new Writable({
    highWaterMark: 64 * 1024,
    write(chunk: Uint8Array, _encoding, done) {
      writes.push(chunk.length);
      setImmediate(() => {
        taken.push(Buffer.from(chunk));
        done();
      });
    },
  });
  const finished = new Promise<void>((resolve) => out.on('finish', resolve));
  return { out: out as unknown as BodyOut, writes, received: () => Buffer.concat(taken), finished };
}

const part = (size: number, seed: number): Uint8Array =>
  Uint8Array.from({ length: size }, (_, i) => (i * 31 + seed) & 0xff);

test('a body arrives whole, whatever its parts and however slow the reader', async () => {
  const size = fc.oneof(
    fc.nat({ max: 3 }),
    fc.nat({ max: 3000 }),
    fc.constantFrom(BLOCK_BYTES / 2 - 1, BLOCK_BYTES / 2, BLOCK_BYTES, 2 * BLOCK_BYTES + 7),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(fc.array(size, { maxLength: 60 }), { minLength: 1, maxLength: 3 }), async (bodies) => {
      // Several at a time, so that one could spoil the memory another is still being sent from.
      const sent = bodies.map((sizes) => {
        const parts = sizes.map((bytes, i) => part(bytes, i));
        const { out, writes, received, finished } = slowOut();
        writeParts(out, parts, sizeOf(parts));
        return { parts, writes, received, finished };
      });
      for (const { parts, writes, received, finished } of sent) {
        await finished;
        assert.ok(received().equals(Buffer.concat(parts)));
        assert.ok(writes.every((bytes) => bytes <= BLOCK_BYTES));
      }
    }),
    { numRuns: 40 },
  );
});

test('thousands of small parts become few writes', async () => {
  const parts = Array.from({ length: 5000 }, (_, i) => part(200, i));
  const { out, writes, received, finished } = slowOut();
  writeParts(out, parts, sizeOf(parts));
  await finished;
  assert.equal(received().length, 1_000_000);
  assert.equal(writes.length, Math.ceil(1_000_000 / BLOCK_BYTES));
});

test('a body that nobody takes is not read on', () => {
  const parts = Array.from({ length: 100 }, (_, i) => part(BLOCK_BYTES, i));
  const { out, writes } = slowOut();
  writeParts(out, parts, sizeOf(parts));
  out.destroy();
  out.emit('drain');
  assert.equal(writes.length, 1);
});
