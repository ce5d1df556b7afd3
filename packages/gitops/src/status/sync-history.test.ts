import assert from 'node:assert/strict';
import { test } from 'node:test';
import { attemptAt, attemptsOf, SYNC_HISTORY, withAttempt } from './sync-history.ts';

const sync = (value?: string) => ({ metadata: { annotations: value === undefined ? {} : { [SYNC_HISTORY]: value } } });
const error = (code: string) => ({ code, errorMessage: `KNV${code}: x` });

// S-943
test('the history keeps the newest ten outcomes; one that repeats itself is no news', () => {
  let value: string | undefined;
  for (let n = 0; n < 25; n++) {
    const failed = n % 2 === 1 ? [error('2009'), error('1060'), error('2009')] : [];
    value = withAttempt(sync(value), attemptAt(`c${n}`, failed, n * 1000));
    assert.ok(value !== undefined);
    assert.equal(withAttempt(sync(value), attemptAt(`c${n}`, failed.toReversed(), n * 1000 + 1)), undefined);
  }
  const attempts = attemptsOf(sync(value));
  assert.deepEqual(
    attempts.map(({ commit }) => commit),
    ['c24', 'c23', 'c22', 'c21', 'c20', 'c19', 'c18', 'c17', 'c16', 'c15'],
  );
  assert.deepEqual(attempts[1], {
    at: '1970-01-01T00:00:23Z',
    commit: 'c23',
    result: 'Failed',
    errors: 3,
    codes: ['2009', '1060'],
  });
});

test('an annotation that somebody has made unreadable is an empty history', () => {
  for (const value of ['', '{', 'null', '{}', '[null, 1, {"at": 1}, {"at": "x", "commit": "c", "result": "Synced"}]'])
    assert.deepEqual(attemptsOf(sync(value)), [], value);
});
