import assert from 'node:assert/strict';
import { test } from 'node:test';
import { scheduleError } from './cron.ts';

// S-262
test('schedules that can be read', () => {
  for (const schedule of [
    '* * * * *',
    '*/15 0-6 1,15 jan-MAR sun',
    '5/10 * ? * 1-5/2',
    '@hourly',
    '@every 1h30m',
    ' 0  0 1 1 * ',
  ]) {
    assert.equal(scheduleError(schedule), undefined, schedule);
  }
});

// S-262
// Compat Types, P1, yes: schedules of CronJobs; conditions of the common type
test('schedules that cannot, in the words of the parser', () => {
  const cases: [string, string][] = [
    ['', 'empty spec string'],
    ['* * * *', 'expected exactly 5 fields, found 4: [* * * *]'],
    ['60 * * * *', 'end of range (60) above maximum (59): 60'],
    ['* * 0 * *', 'beginning of range (0) below minimum (1): 0'],
    ['5-1 * * * *', 'beginning of range (5) beyond end of range (1): 5-1'],
    ['*/0 * * * *', 'step of range should be a positive number: */0'],
    ['1-2-3 * * * *', 'too many hyphens: 1-2-3'],
    ['*/1/2 * * * *', 'too many slashes: */1/2'],
    ['x * * * *', 'failed to parse int from x: strconv.Atoi: parsing "x": invalid syntax'],
    ['@often', 'unrecognized descriptor: @often'],
    ['@every day', 'failed to parse duration @every day'],
  ];
  for (const [schedule, wanted] of cases) assert.equal(scheduleError(schedule), wanted, schedule);
});
