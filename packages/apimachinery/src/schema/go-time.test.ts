import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseGoTime, secondsText } from './go-time.ts';

const shown = (text: string, kind: 'time' | 'micro' = 'time'): string => {
  const time = parseGoTime(text, kind);
  return typeof time === 'string' ? time : `${secondsText(time.seconds)} ${time.fraction}`;
};

// S-269: Times and quantities are read and shown as Go does.
// Compat Writing, P1, yes: times as Go parses them, a MicroTime with its six decimals
test('times as Go reads them', () => {
  const cases: [string, string][] = [
    ['2024-01-31T00:00:00Z', '2024-01-31T00:00:00 '],
    ['2024-01-31T7:00:00Z', '2024-01-31T07:00:00 '],
    ['2024-02-29T00:00:00.123456789Z', '2024-02-29T00:00:00 123456789'],
    ['2024-01-01T00:00:00,5+01:00', '2023-12-31T23:00:00 5'],
    ['2024-01-01T00:00:00+24:60', '2023-12-30T23:00:00 '],
    ['0001-01-01T00:00:00Z', '0001-01-01T00:00:00 '],
    ['9999-12-31T23:59:59-01:00', '10000-01-01T00:59:59 '],
  ];
  for (const [text, want] of cases) assert.equal(shown(text), want, text);
  assert.equal(shown('2024-01-01T00:00:00.123456Z', 'micro'), '2024-01-01T00:00:00 123456');
});

// S-269
test('and what it says of those it does not read', () => {
  const layout = '"2006-01-02T15:04:05Z07:00"';
  const parse = (text: string, rest: string, element: string): string =>
    `parsing time "${text}" as ${layout}: cannot parse "${rest}" as "${element}"`;
  const range = (text: string, what: string): string => `parsing time "${text}": ${what} out of range`;
  const cases: [string, string][] = [
    ['soon', parse('soon', 'soon', '2006')],
    ['2024/01', parse('2024/01', '/01', '-')],
    ['2024-1-01', parse('2024-1-01', '1-01', '01')],
    ['2024-13-01', range('2024-13-01', 'month')],
    ['2024-01-1T', parse('2024-01-1T', '1T', '02')],
    ['2024-01-01t00:00:00Z', parse('2024-01-01t00:00:00Z', 't00:00:00Z', 'T')],
    ['2024-01-01T24:00:00Z', range('2024-01-01T24:00:00Z', 'hour')],
    ['2024-01-01T00:60:00Z', range('2024-01-01T00:60:00Z', 'minute')],
    ['2024-01-01T00:00:60Z', range('2024-01-01T00:00:60Z', 'second')],
    ['2024-01-01T00:00:00.Z', parse('2024-01-01T00:00:00.Z', '.Z', 'Z07:00')],
    ['2024-01-01T00:00:00z', parse('2024-01-01T00:00:00z', 'z', 'Z07:00')],
    ['2024-01-01T00:00:00+0100', parse('2024-01-01T00:00:00+0100', '+0100', 'Z07:00')],
    ['2024-01-01T00:00:00+25:00', range('2024-01-01T00:00:00+25:00', 'time zone offset hour')],
    ['2023-02-29T00:00:00Z', range('2023-02-29T00:00:00Z', 'day')],
    ['2024-01-01T00:00:00Zx', 'parsing time "2024-01-01T00:00:00Zx": extra text: "x"'],
    ['"é', `parsing time "\\"\\xc3\\xa9" as ${layout}: cannot parse "\\"\\xc3\\xa9" as "2006"`],
  ];
  for (const [text, want] of cases) assert.equal(shown(text), want, text);
  assert.equal(
    shown('2024-01-01T00:00:00Z', 'micro'),
    'parsing time "2024-01-01T00:00:00Z" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "Z" as ".000000"',
  );
});
