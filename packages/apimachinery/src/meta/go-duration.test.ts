import assert from 'node:assert/strict';
import test from 'node:test';
import { goDuration, parseGoDuration } from './go-duration.ts';

const CASES: readonly (readonly [text: string, ms: number | undefined])[] = [
  ['0', 0],
  ['1h30m', 5_400_000],
  ['-1.5s', -1500],
  ['.25s', 250],
  ['1us', 0.001],
  ['', undefined],
  ['5', undefined],
  ['1d', undefined],
  ['9999999h', undefined],
  [`${'1'.repeat(300)}s`, undefined],
];

for (const [text, ms] of CASES)
  test(`the duration ${JSON.stringify(text.slice(0, 20))} is ${ms ?? 'none'}`, () =>
    assert.equal(parseGoDuration(text), ms));

test('what is printed is read again', () => {
  for (const ms of [0, 1, 999, 1000, 90_500, 3_600_000]) assert.equal(parseGoDuration(goDuration(ms)), ms);
});
