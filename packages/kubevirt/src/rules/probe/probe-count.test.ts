import assert from 'node:assert/strict';
import { test } from 'node:test';
import { countOutcome, firstCount, type ProbeOutcome, probeSettings } from './probe-count.ts';

const OUTCOMES: Readonly<Record<string, ProbeOutcome>> = {
  s: { type: 'success' },
  f: { type: 'failure', output: 'no' },
  e: { type: 'errored', message: 'not asked' },
};

test('countOutcome(): a result turns after as many outcomes in a row as its threshold says', () => {
  // thresholds of success and failure, result before, outcomes, result after each
  const cases: readonly [number, number, 'success' | 'failure', string, string][] = [
    [1, 3, 'success', 'fff', 'ssf'],
    [1, 3, 'success', 'ffsfff', 'sssssf'],
    [1, 1, 'failure', 'sfs', 'sfs'],
    [3, 1, 'failure', 'sssf', 'ffsf'],
    [2, 2, 'failure', 'sfssff', 'fffssf'],
    // What could not be asked neither counts nor breaks a row.
    [1, 2, 'success', 'fef', 'ssf'],
    [1, 1, 'success', 'eee', 'sss'],
  ];
  for (const [successThreshold, failureThreshold, before, outcomes, results] of cases) {
    const settings = { ...probeSettings({}), successThreshold, failureThreshold };
    let count = firstCount(before);
    const seen = [...outcomes].map((letter) => {
      count = countOutcome(count, OUTCOMES[letter]!, settings);
      return count.result[0];
    });
    assert.equal(seen.join(''), results, outcomes);
  }
});

test('probeSettings(): what is absent or zero has the default of Kubernetes', () => {
  const defaults = { initialDelayMs: 0, periodMs: 10_000, timeoutMs: 1000, successThreshold: 1, failureThreshold: 3 };
  assert.deepEqual(probeSettings({}), defaults);
  assert.deepEqual(probeSettings({ periodSeconds: 0, timeoutSeconds: 0, failureThreshold: 0 }), defaults);
  assert.deepEqual(
    probeSettings({
      initialDelaySeconds: 5,
      periodSeconds: 2,
      timeoutSeconds: 4,
      successThreshold: 2,
      failureThreshold: 6,
    }),
    { initialDelayMs: 5000, periodMs: 2000, timeoutMs: 4000, successThreshold: 2, failureThreshold: 6 },
  );
});
