import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import { sha256 } from './sha256.ts';

test('sha256() gives what OpenSSL gives', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme', maxLength: 200 }), (text) => {
      assert.equal(sha256(new TextEncoder().encode(text)), createHash('sha256').update(text).digest('hex'));
    }),
  );
});
