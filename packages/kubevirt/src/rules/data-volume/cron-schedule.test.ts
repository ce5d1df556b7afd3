import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseCron } from './cron-schedule.ts';

const FROM = '2026-11-27T00:50:30Z';
for (const [schedule, next] of [
  ['* * * * *', '2026-11-27T00:51:00Z'],
  ['30 1 * * 1', '2026-11-30T01:30:00Z'],
  ['0 */12 * * *', '2026-11-27T12:00:00Z'],
  ['51,50 0 * * *', '2026-11-27T00:51:00Z'],
  ['50 0 * * *', '2026-11-28T00:50:00Z'],
  ['0 0 1 jan *', '2027-01-01T00:00:00Z'],
  ['0 0 29 2 *', '2028-02-29T00:00:00Z'],
  ['0 0 13 * fri', '2026-12-04T00:00:00Z'],
  ['0 0 * * 7', '2026-11-29T00:00:00Z'],
  ['5-10/5 * * * *', '2026-11-27T01:05:00Z'],
  ['@hourly', '2026-11-27T01:00:00Z'],
] as const)
  test(`${schedule} comes next at ${next}`, () => {
    const time = parseCron(schedule)?.next(Date.parse(FROM));
    assert.equal(time === undefined ? undefined : new Date(time).toISOString(), next.replace('Z', '.000Z'));
  });

for (const text of [
  '',
  '* * * *',
  '60 * * * *',
  '* 24 * * *',
  '*/0 * * * *',
  '1-2-3 * * * *',
  'x * * * *',
  '5-1 * * * *',
])
  test(`"${text}" is no schedule`, () => assert.equal(parseCron(text), undefined));

test('a date that never comes', () => assert.equal(parseCron('0 0 31 2 *')?.next(0), undefined));
