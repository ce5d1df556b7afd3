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
test('a text that is no time is refused with the form that is expected', () => {
  const refused = (text: string, layout = '2006-01-02T15:04:05Z07:00'): string =>
    `parsing time "${text}" as "${layout}": cannot parse it`;
  const wrong = [
    ...['soon', '2024/01', '2024-1-01', '2024-01-1T', '2024-01-01t00:00:00Z', '2024-01-01T00:00:00.Z'],
    ...['2024-01-01T00:00:00z', '2024-01-01T00:00:00+0100', '2024-01-01T00:00:00Zx', '2024-01-01T00:00:00Z\n'],
  ];
  for (const text of wrong) assert.equal(shown(text), refused(text.replace('\n', '\\n')));
  const plain = '2024-01-01T00:00:00Z';
  assert.equal(shown(plain, 'micro'), refused(plain, '2006-01-02T15:04:05.000000Z07:00'));
  const outOfRange = [
    ...['2024-13-01T00:00:00Z', '2024-00-01T00:00:00Z', '2024-01-00T00:00:00Z', '2023-02-29T00:00:00Z'],
    ...['2024-01-01T24:00:00Z', '2024-01-01T00:60:00Z', '2024-01-01T00:00:60Z', '2024-01-01T00:00:00+25:00'],
    '2024-01-01T00:00:00+00:61',
  ];
  for (const text of outOfRange) assert.equal(shown(text), `parsing time "${text}": a part is out of range`);
});
