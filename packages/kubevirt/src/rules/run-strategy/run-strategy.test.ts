import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type PrintableInput, printableStatus } from './printable-status.ts';
import {
  effectiveRunStrategy,
  type InstanceView,
  openRequests,
  type RunStrategy,
  type StateChangeRequest,
  startStopDecision,
} from './run-strategy.ts';
import { backoffLeft, nextStartFailure, startBackoffSeconds } from './start-failure.ts';

const vmi = (phase: string, deleting = false): InstanceView => ({ uid: 'u', phase, deleting });
const START: StateChangeRequest = { action: 'Start' };
const STOP: StateChangeRequest = { action: 'Stop', uid: 'u' };

const DECISIONS: [
  strategy: RunStrategy,
  instance: InstanceView | undefined,
  requests: StateChangeRequest[],
  last: string,
  expected: string,
][] = [
  ['Always', undefined, [], '', 'create'],
  ['Always', vmi('Running'), [], 'Always', 'keep'],
  ['Always', vmi('Succeeded'), [], 'Always', 'delete'],
  ['Always', vmi('Failed'), [], 'Always', 'delete'],
  ['Always', vmi('Running'), [STOP, START], 'Always', 'delete'],
  ['Always', vmi('Running'), [{ action: 'Stop', uid: 'other' }], 'Always', 'keep'],
  ['Always', vmi('Running'), [{ action: 'Stop' }], 'Always', 'keep'],
  ['Always', vmi('Failed', true), [], 'Always', 'keep'],
  ['RerunOnFailure', undefined, [], '', 'create'],
  ['RerunOnFailure', undefined, [], 'RerunOnFailure', 'keep'],
  ['RerunOnFailure', undefined, [START], 'RerunOnFailure', 'create'],
  ['RerunOnFailure', vmi('Failed'), [], 'RerunOnFailure', 'delete+start'],
  ['RerunOnFailure', vmi('Succeeded'), [], 'RerunOnFailure', 'delete'],
  ['RerunOnFailure', vmi('Running'), [STOP], 'RerunOnFailure', 'delete'],
  ['Manual', undefined, [], '', 'keep'],
  ['Manual', undefined, [START], '', 'create'],
  ['Manual', undefined, [{ ...START, data: { paused: 'true' } }], '', 'create paused'],
  ['Manual', vmi('Failed'), [], '', 'keep'],
  ['Manual', vmi('Running'), [STOP], '', 'delete'],
  ['Halted', undefined, [], '', 'keep'],
  ['Halted', undefined, [{ ...START, data: { paused: 'true' } }], '', 'unhalt'],
  ['Halted', undefined, [START], '', 'keep'],
  ['Halted', vmi('Running'), [], 'Always', 'delete'],
  ['Once', undefined, [], '', 'create'],
  ['Once', vmi('Succeeded'), [], 'Once', 'keep'],
  ['Once', vmi('Failed'), [], 'Once', 'keep'],
];

// S-040: Run strategies Always, Halted, Manual, RerunOnFailure and Once decide as upstream's table.
test('startStopDecision() follows the run strategy table', () => {
  for (const [strategy, instance, requests, lastStrategy, expected] of DECISIONS) {
    const decision = startStopDecision({ strategy, instance, requests, lastStrategy, backoffMs: 0 });
    const shown =
      decision.type === 'delete' && decision.thenStart
        ? 'delete+start'
        : decision.type === 'create' && decision.paused
          ? 'create paused'
          : decision.type;
    assert.equal(shown, expected, JSON.stringify({ strategy, instance, requests, lastStrategy }));
  }
});

// S-059
test('startStopDecision() waits out the back-off, but not for Manual', () => {
  const of = (strategy: RunStrategy) =>
    startStopDecision({ strategy, instance: undefined, requests: [START], lastStrategy: '', backoffMs: 7 });
  assert.deepEqual(of('Always'), { type: 'wait', ms: 7 });
  assert.deepEqual(of('Once'), { type: 'wait', ms: 7 });
  assert.equal(of('Manual').type, 'create');
});

// S-040
test('effectiveRunStrategy() reads both forms', () => {
  assert.equal(effectiveRunStrategy({ running: true }), 'Always');
  assert.equal(effectiveRunStrategy({ running: false }), 'Halted');
  assert.equal(effectiveRunStrategy({}), 'Halted');
  assert.equal(effectiveRunStrategy({ runStrategy: 'Once' }), 'Once');
});

test('openRequests() drops what has been done', () => {
  assert.deepEqual(openRequests([STOP, START], undefined, 'Manual'), [START]);
  // A restart: its Start must survive the pass that only deletes the instance.
  assert.deepEqual(openRequests([STOP, START], vmi('Running'), 'Manual'), [STOP, START]);
  assert.deepEqual(openRequests([STOP, START], vmi('Running', true), 'Manual'), [STOP, START]);
  assert.deepEqual(openRequests([START], vmi('Pending'), 'Manual'), []);
  assert.deepEqual(openRequests([{ action: 'Stop', uid: 'old' }], vmi('Running'), 'Manual'), []);
  assert.deepEqual(openRequests([{ action: 'Stop', uid: 'old' }, START], vmi('Running'), 'Manual'), []);
  assert.deepEqual(openRequests([{ action: 'Stop' }, START], undefined, 'Manual'), [START]);
  // Restarted, then stopped before the old instance was gone: it stays off.
  assert.deepEqual(openRequests([STOP, START], vmi('Running', true), 'Halted'), [STOP]);
  const paused = { ...START, data: { paused: 'true' } };
  assert.deepEqual(openRequests([paused], undefined, 'Halted'), [paused]);
});

// S-041: Failed starts back off, with the square of their number and five minutes at most.
test('startBackoffSeconds() grows with the square and never passes five minutes', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 1000 }),
      fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
      (n, random) => {
        const seconds = startBackoffSeconds(n, random);
        assert.ok(seconds <= 300 && seconds >= Math.min(300, 10 * n * n) && seconds <= Math.min(300, 15 * n * n));
      },
    ),
  );
});

// S-041
test('nextStartFailure() counts each instance once and forgets when a guest ran', () => {
  const base = { strategy: 'Always' as const, now: 0, random: 0 };
  const failed = { uid: 'a', phase: 'Failed', everRan: false };
  const first = nextStartFailure({ ...base, failure: undefined, instance: failed });
  assert.deepEqual(first, {
    consecutiveFailCount: 1,
    lastFailedVMIUID: 'a',
    retryAfterTimestamp: '1970-01-01T00:00:10Z',
  });
  assert.equal(nextStartFailure({ ...base, failure: first, instance: failed }), first);
  assert.equal(nextStartFailure({ ...base, failure: first, instance: undefined }), first);
  assert.equal(
    nextStartFailure({ ...base, failure: first, instance: { ...failed, uid: 'b' } })?.consecutiveFailCount,
    2,
  );
  assert.equal(
    nextStartFailure({ ...base, failure: first, instance: { uid: 'b', phase: 'Failed', everRan: true } }),
    undefined,
  );
  assert.equal(nextStartFailure({ ...base, strategy: 'Manual', failure: first, instance: failed }), undefined);
  assert.equal(backoffLeft(first, 4000), 6000);
  assert.equal(backoffLeft(first, 11_000), 0);
});

const running = { phase: 'Running', deleting: false, migrating: false, conditions: [] };
const PRINTED: [over: Partial<PrintableInput>, expected: string][] = [
  [{ deleting: true, instance: running }, 'Terminating'],
  [{ instance: { ...running, deleting: true } }, 'Stopping'],
  [{ instance: running, expects: 'delete' }, 'Stopping'],
  [{ instance: { ...running, migrating: true } }, 'Migrating'],
  [{ instance: { ...running, conditions: [{ type: 'Paused', status: 'True' }] } }, 'Paused'],
  [{ instance: running }, 'Running'],
  [
    {
      instance: {
        ...running,
        phase: 'Pending',
        conditions: [{ type: 'Synchronized', status: 'False', reason: 'FailedPvcNotFound' }],
      },
    },
    'ErrorPvcNotFound',
  ],
  [
    {
      instance: {
        ...running,
        phase: 'Scheduling',
        conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable' }],
      },
    },
    'ErrorUnschedulable',
  ],
  [
    {
      instance: {
        ...running,
        phase: 'Scheduling',
        conditions: [{ type: 'Synchronized', status: 'False', reason: 'ErrImagePull' }],
      },
    },
    'ErrImagePull',
  ],
  [{ instance: { ...running, phase: 'Scheduled' } }, 'Starting'],
  [{ instance: { ...running, phase: '' } }, 'Starting'],
  [{ expects: 'create', failCount: 3 }, 'Starting'],
  [{ failCount: 1 }, 'CrashLoopBackOff'],
  [{ failCount: 1, strategy: 'Halted' }, 'Stopped'],
  [{ instance: { ...running, phase: 'Succeeded' } }, 'Stopped'],
  [{}, 'Stopped'],
  [{ strategy: 'WaitAsReceiver', instance: { ...running, phase: 'WaitingForSync' } }, 'WaitingForReceiver'],
  [{ instance: { ...running, phase: 'Strange' } }, 'Unknown'],
  [{ instance: { ...running, conditions: [{ type: 'Ready', status: 'False', reason: 'NodeNotReady' }] } }, 'Unknown'],
];
// S-042: `printableStatus` follows upstream's order.
test('printableStatus() takes the first rule that matches', () => {
  for (const [over, expected] of PRINTED)
    assert.equal(
      printableStatus({
        deleting: false,
        strategy: 'Always',
        instance: undefined,
        expects: undefined,
        failCount: 0,
        ...over,
      }),
      expected,
      JSON.stringify(over),
    );
});
