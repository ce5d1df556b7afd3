import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { createLineSplitter } from './line-splitter.ts';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

test('push() gives the same lines however the bytes are cut', () => {
  const line = fc.string({ unit: 'grapheme', maxLength: 30 }).map((text) => JSON.stringify({ text }));
  fc.assert(
    fc.property(fc.array(line, { maxLength: 8 }), fc.array(fc.nat(40), { maxLength: 20 }), (lines, cuts) => {
      const whole = bytes(lines.map((one) => `${one}\n`).join(''));
      const splitter = createLineSplitter();
      const found: string[] = [];
      let at = 0;
      for (const cut of cuts) {
        found.push(...splitter.push(whole.subarray(at, at + cut)));
        at = Math.min(at + cut, whole.length);
      }
      found.push(...splitter.push(whole.subarray(at)));
      assert.deepEqual(found, lines);
    }),
  );
});

test('push() refuses a frame beyond the bound, in one piece or many', () => {
  assert.throws(() => createLineSplitter(8).push(bytes('123456789')), RangeError);
  assert.throws(() => createLineSplitter(8).push(bytes('123456789\n')), RangeError);
  const splitter = createLineSplitter(8);
  splitter.push(bytes('12345678'));
  assert.throws(() => splitter.push(bytes('9')), RangeError);
  assert.deepEqual(createLineSplitter(8).push(bytes('12345678\n')), ['12345678']);
});

test('push() leaves empty lines out and keeps half a frame for later', () => {
  const splitter = createLineSplitter();
  assert.deepEqual(splitter.push(bytes('a\n\nb\nhalf')), ['a', 'b']);
  assert.deepEqual(splitter.push(bytes(' more\n')), ['half more']);
});
