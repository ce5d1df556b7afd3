import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DEFAULT_UNDELETE_WINDOW, UNDELETE_WINDOW_ANNOTATION, undeleteWindowOf } from './bin-settings.ts';

const saying = (value?: string) => ({
  metadata: value === undefined ? {} : { annotations: { [UNDELETE_WINDOW_ANNOTATION]: value } },
});

// S-776
test('undeleteWindowOf() reads durations, and takes the shortest', () => {
  const table: [number, ...(string | undefined)[]][] = [
    [DEFAULT_UNDELETE_WINDOW],
    [DEFAULT_UNDELETE_WINDOW, undefined],
    [0, '0'],
    [0, '0s'],
    [90 * 60_000, '90m'],
    [3_600_000, '48h', '1h'],
    [DEFAULT_UNDELETE_WINDOW, 'tomorrow'],
    [DEFAULT_UNDELETE_WINDOW, '-1h'],
    [60_000, 'tomorrow', '1m'],
  ];
  for (const [ms, ...values] of table) assert.equal(undeleteWindowOf(values.map(saying)), ms, String(values));
});
