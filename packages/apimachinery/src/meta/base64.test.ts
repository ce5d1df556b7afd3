import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodeBase64Url, encodeBase64Url } from './base64.ts';

// S-484: A token has one spelling: padding, white space and bits that mean nothing make it none.
test('some bytes have one spelling as base64url', () => {
  for (let length = 0; length < 8; length++) {
    const bytes = Uint8Array.from({ length }, (_, at) => 250 - 37 * at);
    const text = encodeBase64Url(bytes);
    assert.deepEqual(decodeBase64Url(text), bytes);
    for (const other of [`${text}=`, `${text}==`, ` ${text}`, `${text}\n`, `${text}+`, `${text}/`]) {
      assert.throws(() => decodeBase64Url(other), other);
    }
  }
  // The last character holds bits that mean nothing: set, they are another text for the same bytes.
  assert.deepEqual([...decodeBase64Url('AA')], [0]);
  for (const other of ['AB', 'AP', 'AAB', 'A', 'AAAAAB']) assert.throws(() => decodeBase64Url(other), other);
});
