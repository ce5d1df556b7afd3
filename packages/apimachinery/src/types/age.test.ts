import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { age, ageSince, humanDuration } from './age.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const YEAR = 365 * DAY;

test('humanDuration() prints as kubectl does', () => {
  const cases: [number, string][] = [
    [-2 * SECOND, '<invalid>'],
    [-1.5 * SECOND, '0s'],
    [-0.5 * SECOND, '0s'],
    [0, '0s'],
    [5 * SECOND, '5s'],
    [119 * SECOND, '119s'],
    [120 * SECOND, '2m'],
    [3 * MINUTE + 20 * SECOND, '3m20s'],
    [10 * MINUTE - SECOND, '9m59s'],
    [10 * MINUTE + 5 * SECOND, '10m'],
    [179 * MINUTE, '179m'],
    [3 * HOUR, '3h'],
    [7 * HOUR + 59 * MINUTE, '7h59m'],
    [8 * HOUR + 30 * MINUTE, '8h'],
    [47 * HOUR, '47h'],
    [48 * HOUR, '2d'],
    [2 * DAY + 4 * HOUR, '2d4h'],
    [8 * DAY - HOUR, '7d23h'],
    [8 * DAY + HOUR, '8d'],
    [729 * DAY, '729d'],
    [2 * YEAR, '2y'],
    [2 * YEAR + DAY, '2y1d'],
    [8 * YEAR - DAY, '7y364d'],
    [8 * YEAR + 30 * DAY, '8y'],
  ];
  for (const [ms, text] of cases) assert.equal(humanDuration(ms), text, String(ms));
});

test('ageSince() says <unknown> without a time', () => {
  assert.equal(ageSince(null, 0), '<unknown>');
  assert.equal(ageSince('', 0), '<unknown>');
  assert.equal(ageSince('yesterday', 0), '<unknown>');
  assert.equal(age({ metadata: { creationTimestamp: '2024-01-01T00:00:00Z' } }, Date.UTC(2024, 0, 1, 0, 0, 5)), '5s');
  assert.equal(age({}, 0), '<unknown>');
});

test('humanDuration() never shows more than two units', () => {
  fc.assert(fc.property(fc.nat({ max: 20 * YEAR }), (ms) => /^\d+[smhdy](\d+[smhd])?$/.test(humanDuration(ms))));
});
