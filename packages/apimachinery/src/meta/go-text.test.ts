import assert from 'node:assert/strict';
import { test } from 'node:test';
import { goValue, sortMembers } from './go-text.ts';

const VALUES: readonly (readonly [unknown, string])[] = [
  ['a"b\\c', '"a\\"b\\\\c"'],
  ['\u0007\n\u0000\u007f', '"\\a\\n\\x00\\x7f"'],
  ['é<>&', '"é<>&"'],
  ['\u2028\u{e0001}', '"\\u2028\\U000e0001"'],
  [10_000_000_000, '10000000000'],
  [1.5, '1.5'],
  [1_234_567.5, '1.2345675e+06'],
  [1e-5, '1e-05'],
  [1e21, '1e+21'],
  [true, 'true'],
  [null, 'null'],
  [{ b: '<', a: [1] }, '{"b":"\\u003c","a":[1]}'],
];

test('goValue() prints what field errors of apimachinery print', () => {
  for (const [value, text] of VALUES) assert.equal(goValue(value), text);
  assert.equal(goValue(sortMembers({ b: 1, a: { d: 1, c: 2 } })), '{"a":{"c":2,"d":1},"b":1}');
});
