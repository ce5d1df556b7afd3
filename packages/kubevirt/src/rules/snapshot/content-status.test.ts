import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { VolumeSnapshot } from '../../../../cluster-rules/src/volume-snapshot/kinds.ts';
import { allTaken, contentStatus, type VolumeSnapshotFact } from './content-status.ts';

const NOW = Date.parse('2026-01-01T00:00:00Z');
const present = (name: string, status?: VolumeSnapshot['status']): VolumeSnapshotFact => ({
  name,
  type: 'present',
  snapshot: { metadata: { name }, ...(status && { status }) } as VolumeSnapshot,
});
const taken = { creationTime: '2025-12-31T23:59:59Z' };

describe('contentStatus()', () => {
  const cases: [name: string, facts: VolumeSnapshotFact[], expected: string][] = [
    ['nothing to save', [], 'taken ready'],
    ['one is not taken', [present('a', taken), present('b')], ''],
    ['all are taken, one is not ready', [present('a', taken), present('b', { ...taken, readyToUse: true })], 'taken'],
    ['all are ready', [present('a', { ...taken, readyToUse: true })], 'taken ready'],
    ['one has failed', [present('a', { error: { message: 'no room' } })], 'VolumeSnapshot a error: no room'],
    [
      'one failed before it was ready',
      [present('a', { ...taken, readyToUse: true, error: { message: 'once' } })],
      'taken ready',
    ],
    ['one is gone', [{ name: 'a', type: 'missing' }, present('b', taken)], 'VolumeSnapshots (a) missing'],
    [
      'nobody wants them any more',
      [{ name: 'a', type: 'skipped' }],
      'VolumeSnapshots (a) skipped because vm snapshot is deleted',
    ],
  ];
  for (const [name, facts, expected] of cases)
    it(name, () => {
      const { creationTime, readyToUse, error } = contentStatus({ status: undefined, facts, now: NOW });
      const text = [creationTime && 'taken', readyToUse && 'ready', error?.message].filter(Boolean).join(' ');
      assert.equal(text, expected);
      assert.equal(allTaken(facts), creationTime !== undefined);
    });
  it('keeps the time of an error that is reported again, and forgets one that is over', () => {
    const facts = [present('a', { error: { message: 'no room' } })];
    const first = contentStatus({ status: undefined, facts, now: NOW });
    assert.deepEqual(contentStatus({ status: first, facts, now: NOW + 1000 }), first);
    assert.equal(contentStatus({ status: first, facts: [present('a', taken)], now: NOW }).error, undefined);
  });
});
