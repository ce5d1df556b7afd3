import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DELETE_PROTECTION_LABEL, guardsItsParts, isDeleteProtected } from './delete-protection.ts';

const CASES: readonly [labels: Record<string, string> | undefined, expected: boolean][] = [
  [{ [DELETE_PROTECTION_LABEL]: 'true' }, true],
  [{ [DELETE_PROTECTION_LABEL]: 'True' }, true],
  [{ [DELETE_PROTECTION_LABEL]: 'TRUE' }, false],
  [{ [DELETE_PROTECTION_LABEL]: 'False' }, false],
  [{ [DELETE_PROTECTION_LABEL]: '' }, false],
  [{ other: 'true' }, false],
  [undefined, false],
];

test('the values true and True protect a machine, and no others', () => {
  for (const [labels, expected] of CASES)
    assert.equal(isDeleteProtected({ metadata: { name: 'vm', ...(labels && { labels }) } }), expected, String(labels));
});

test('a machine whose deletion has begun guards nothing', () => {
  const labels = { [DELETE_PROTECTION_LABEL]: 'true' };
  assert.equal(guardsItsParts({ metadata: { name: 'vm', labels } }), true);
  const deletionTimestamp = '2026-01-01T00:00:00Z';
  assert.equal(guardsItsParts({ metadata: { name: 'vm', labels, deletionTimestamp } }), false);
});
