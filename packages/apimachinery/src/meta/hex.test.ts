import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hexOf } from './hex.ts';

test('bytes are two digits each, in lower case', () => {
  assert.equal(hexOf(Uint8Array.of(0, 1, 15, 16, 0xab, 255)), '00010f10abff');
  assert.equal(hexOf(new Uint8Array()), '');
});
