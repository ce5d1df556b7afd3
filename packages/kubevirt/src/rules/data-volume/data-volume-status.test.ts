import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PersistentVolumeClaim } from '@coracle/apimachinery/types/types';
import type { DataVolumeStatus } from '../../kinds/kinds.ts';
import { dataVolumeEvents } from './data-volume-events.ts';
import { type DataVolumeOutcome, dataVolumeStatus, nextAttemptAt, transferText } from './data-volume-status.ts';
import { allowsStart, diskState } from './readiness.ts';

const NOW = Date.parse('2026-11-27T01:00:00Z');
const claim = (phase: string): PersistentVolumeClaim =>
  ({ apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name: 'a' }, status: { phase } }) as never;
const after = (
  before: DataVolumeStatus | undefined,
  outcome: DataVolumeOutcome,
  phase = 'Pending',
  now = NOW,
): DataVolumeStatus => dataVolumeStatus(before, outcome, { claim: claim(phase), claimName: 'a', now });
const words = ({ conditions = [] }: DataVolumeStatus): string[] =>
  conditions.map(({ type, status, reason = '' }) => `${type} ${status} ${reason}`.trim());
const report = {
  state: 'running',
  step: 'download',
  bytes: 512 * 2 ** 20,
  totalBytes: 2 ** 30,
  fraction: 0.5,
  bytesPerSecond: 2 ** 26,
  secondsLeft: 8,
} as const;
const running: DataVolumeOutcome = { type: 'running', work: 'Import', report };
const failed: DataVolumeOutcome = { type: 'failed', work: 'Import', reason: 'Error', message: 'no' };

const ROWS: readonly (readonly [DataVolumeOutcome, string, string, string, readonly string[]])[] = [
  [
    { type: 'waiting', message: 'x' },
    'Pending',
    'Pending',
    'N/A',
    ['Bound False Pending', 'Ready False', 'Running False Pending'],
  ],
  [
    { type: 'no-consumer' },
    'Pending',
    'PendingPopulation',
    'N/A',
    ['Bound False Pending', 'Ready False', 'Running False Pending'],
  ],
  [
    running,
    'Pending',
    'ImportInProgress',
    '50.00%',
    ['Bound False Pending', 'Ready False TransferRunning', 'Running True Pod is running'],
  ],
  [
    { type: 'waiting', message: 'x', work: 'Upload' },
    'Pending',
    'UploadScheduled',
    'N/A',
    ['Bound False Pending', 'Ready False', 'Running False Pending'],
  ],
  [
    { type: 'running', work: 'Upload', report: { state: 'running', step: 'waiting', bytes: 0 } },
    'Pending',
    'UploadReady',
    'N/A',
    ['Bound False Pending', 'Ready False TransferRunning', 'Running True Pod is running'],
  ],
  [failed, 'Pending', 'ImportInProgress', 'N/A', ['Bound False Pending', 'Ready False', 'Running False Error']],
  [
    { type: 'bound', work: 'Clone' },
    'Bound',
    'Succeeded',
    '100.0%',
    ['Bound True Bound', 'Ready True', 'Running False Completed'],
  ],
];
for (const [outcome, claimPhase, phase, progress, conditions] of ROWS)
  test(`${outcome.type}: ${phase}, ${progress}`, () => {
    const status = after(undefined, outcome, claimPhase);
    assert.equal(status.phase, phase);
    assert.equal(status.progress, progress);
    assert.deepEqual(words(status), conditions);
  });

// S-1316: Why the last attempt to fill a DataVolume failed stays in its condition Running while it waits for the next one, and
//   until that has begun.
test('a failure stays readable until the next attempt has begun', () => {
  const once = after(undefined, failed);
  const turn: DataVolumeOutcome = { ...running, report: { state: 'running', step: 'waiting', bytes: 0 } };
  const waits = after(once, turn, 'Pending', NOW + 5000);
  assert.deepEqual(waits.conditions?.[2], once.conditions?.[2]);
  assert.equal(nextAttemptAt(waits), NOW + 1000, 'it is not put off');
  assert.equal(after(waits, running, 'Pending', NOW + 6000).conditions?.[2]?.message, transferText(report));
});

test('attempts come later each time, five minutes apart at most, and start anew with a transfer', () => {
  const first = after(undefined, failed);
  assert.equal(first.restartCount, 1);
  assert.equal(nextAttemptAt(first), NOW + 1000);
  const second = after(first, failed, 'Pending', NOW + 1000);
  assert.equal(nextAttemptAt(second), NOW + 1000 + 2000);
  assert.equal(nextAttemptAt({ ...second, restartCount: 30 }), NOW + 1000 + 300_000);
  // A pause writes nothing: it would move the time.
  assert.deepEqual(after(second, { type: 'pausing' }, 'Pending', NOW + 1500), second);
  assert.equal(nextAttemptAt(after(second, running)), 0);
});

test('a transfer in words', () => {
  assert.equal(transferText(report), 'download: 512.0 MiB of 1.0 GiB, 64.0 MiB/s, 8s left');
  assert.equal(transferText({ ...report, secondsLeft: 7384 }), 'download: 512.0 MiB of 1.0 GiB, 64.0 MiB/s, 2h3m left');
  assert.equal(transferText({ state: 'running', step: 'convert', bytes: 1 }), 'convert');
});

test('events name what has changed, once', () => {
  const started = after(undefined, running);
  const reasons = (
    before: DataVolumeStatus | undefined,
    next: DataVolumeStatus,
    outcome: DataVolumeOutcome,
  ): string[] => dataVolumeEvents('a', { before, after: next, outcome }).map(({ reason }) => reason);
  assert.deepEqual(reasons(undefined, started, running), ['ImportInProgress']);
  assert.deepEqual(reasons(started, after(started, running), running), []);
  assert.deepEqual(reasons(started, after(started, failed), failed), ['Error', 'ImportFailed']);
  const bound: DataVolumeOutcome = { type: 'bound', work: 'Import' };
  assert.deepEqual(reasons(started, after(started, bound, 'Bound'), bound), ['ImportSucceeded']);
});

test('what a machine makes of it', () => {
  const of = (status: DataVolumeStatus) =>
    ({ apiVersion: '', kind: '', metadata: {}, spec: {}, status }) as Parameters<typeof allowsStart>[0] & object;
  const [busy, broken, waits, full] = [
    of(after(undefined, running)),
    of(after(undefined, failed)),
    of(after(undefined, { type: 'no-consumer' })),
    of(after(undefined, { type: 'bound', work: 'Import' }, 'Bound')),
  ];
  assert.deepEqual([busy, broken, waits, full, undefined].map(allowsStart), [false, false, true, true, false]);
  assert.deepEqual([[busy], [full, broken], [full, waits], [full]].map(diskState), [
    'provisioning',
    'error',
    'binding',
    'ready',
  ]);
});
