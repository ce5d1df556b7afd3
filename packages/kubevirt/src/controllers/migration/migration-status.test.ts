import assert from 'node:assert/strict';
import { test } from 'node:test';
import { migrationOf, podOf, vmiOf } from './migration.fixture.ts';
import { type MigrationFacts, nextMigrationStatus } from './migration-status.ts';

const NOW = Date.UTC(2030, 0, 1, 0, 1);
const MINE = { migrationUid: 'uid-m', sourceNode: 'n1', targetNode: 'n2', targetPod: 'p' };
const LABEL = { labels: { 'kubevirt.io/migrationTargetNodeName': 'n2' } };
const facts = (
  phase: string,
  over: Partial<MigrationFacts> & { deleting?: boolean; conditions?: object[] } = {},
): MigrationFacts => {
  const { deleting, conditions, ...rest } = over;
  const status = { ...(phase && { phase }), ...(conditions && { conditions }) };
  return {
    migration: migrationOf('m', { status, ...(deleting && { metadata: { deletionTimestamp: 't' } }) }),
    vmi: vmiOf(),
    target: undefined,
    sourcePod: undefined,
    blocked: false,
    quotaExceeded: false,
    now: NOW,
    ...rest,
  };
};
const state = (more: object = {}, status: object = {}) =>
  vmiOf({ migrationState: { ...MINE, ...more }, ...status }, LABEL);
const READY = podOf('Running');

const STEPS: readonly [what: string, facts: MigrationFacts, phase: string, message?: string][] = [
  ['new', facts(''), 'Pending'],
  [
    'another one holds the instance',
    facts('', { blocked: true }),
    'Failed',
    'VMI is not eligible for migration because another migration job is in progress.',
  ],
  ...['sendTo', 'receive'].map((end): (typeof STEPS)[number] => [
    `${end}: to another cluster`,
    facts('', { migration: migrationOf('m', { spec: { vmiName: 'vm', [end]: { migrationID: 'x' } } }) }),
    'Failed',
    'Migration failed because guests move between nodes of one cluster only: sendTo and receive are not supported.',
  ]),
  ['no target yet', facts('Pending'), 'Pending'],
  ['a target', facts('Pending', { target: podOf('Pending') }), 'Scheduling'],
  ['the target is not ready', facts('Scheduling', { target: podOf('Pending') }), 'Scheduling'],
  ['the target is ready', facts('Scheduling', { target: READY }), 'Scheduled'],
  ['not handed off', facts('Scheduled', { target: READY }), 'Scheduled'],
  [
    'the agents would not find it',
    facts('Scheduled', { target: READY, vmi: vmiOf({ migrationState: MINE }) }),
    'Scheduled',
  ],
  ['handed off', facts('Scheduled', { target: READY, vmi: state() }), 'PreparingTarget'],
  ['the target prepares', facts('PreparingTarget', { target: READY, vmi: state() }), 'PreparingTarget'],
  [
    'the target waits',
    facts('PreparingTarget', { target: READY, vmi: state({ targetNodeAddress: 'x' }) }),
    'TargetReady',
  ],
  [
    'the source has not begun',
    facts('TargetReady', { target: READY, vmi: state({ targetNodeAddress: 'x' }) }),
    'TargetReady',
  ],
  ['the source sends', facts('TargetReady', { target: READY, vmi: state({ startTimestamp: 't' }) }), 'Running'],
  ['under way', facts('Running', { target: READY, vmi: state({ startTimestamp: 't' }) }), 'Running'],
  [
    'done',
    facts('Running', { target: READY, vmi: state({ completed: true }) }),
    'Succeeded',
    'Source node reported migration succeeded',
  ],
  [
    'done, and the target Pod ended since',
    facts('Running', { target: podOf('Succeeded'), vmi: state({ completed: true }) }),
    'Succeeded',
    'Source node reported migration succeeded',
  ],
  [
    'done, a change still pending',
    facts('Running', {
      target: READY,
      vmi: state({ completed: true }, { conditions: [{ type: 'MigrationRequired', status: 'True' }] }),
    }),
    'Running',
  ],
  [
    'done, a CPU change still pending',
    facts('Running', {
      target: READY,
      vmi: state({ completed: true }, { conditions: [{ type: 'HotVCPUChange', status: 'False' }] }),
    }),
    'Running',
  ],
  [
    'failed',
    facts('Running', { target: READY, vmi: state({ completed: true, failed: true }) }),
    'Failed',
    'source node reported migration failed',
  ],
  [
    'failed early',
    facts('PreparingTarget', { target: READY, vmi: state({ failed: true }) }),
    'Failed',
    'source node reported migration failed',
  ],
  ['no instance', facts('Pending', { vmi: undefined }), 'Failed', 'Migration failed because vmi does not exist.'],
  [
    'the guest ended',
    facts('Running', { vmi: state({}, { phase: 'Succeeded' }) }),
    'Failed',
    'Migration failed vmi shutdown during migration.',
  ],
  [
    'the target ended',
    facts('Scheduling', { target: podOf('Failed') }),
    'Failed',
    'Migration failed because target pod shutdown during migration',
  ],
  ['the target vanished', facts('Scheduled'), 'Failed', 'Migration target pod was removed during active migration.'],
  [
    'the state was cleared',
    facts('TargetReady', { target: READY }),
    'Failed',
    "VMI's migration state was cleared during the active migration.",
  ],
  [
    'the state was taken over',
    facts('TargetReady', { target: READY, vmi: vmiOf({ migrationState: { migrationUid: 'other' } }) }),
    'Failed',
    "VMI's migration state was taken over by another migration job during active migration.",
  ],
  [
    'deleted before the hand-off',
    facts('Scheduling', { target: READY, deleting: true }),
    'Failed',
    'Migration failed due to being canceled',
  ],
  [
    'deleted as it was handed off',
    facts('Scheduled', { target: READY, vmi: state(), deleting: true }),
    'PreparingTarget',
  ],
  [
    'deleted under way',
    facts('Running', { target: READY, vmi: state({ startTimestamp: 't' }), deleting: true }),
    'Running',
  ],
  ['over stays over', facts('Failed', { vmi: state({ completed: true }) }), 'Failed'],
];
for (const [what, given, phase, message] of STEPS) {
  test(`nextMigrationStatus(): ${what}`, () => {
    const { status, event } = nextMigrationStatus(given);
    assert.equal(status.phase, phase);
    assert.equal(event?.message, message);
    if (event) assert.equal(event.type, phase === 'Succeeded' ? 'Normal' : 'Warning');
    const stamps = status.phaseTransitionTimestamps ?? [];
    assert.deepEqual(
      stamps.map((stamp) => stamp.phase),
      given.migration.status?.phase === phase ? [] : [phase],
    );
  });
}

test('conditions: a request to abort, a quota that says no until it does not', () => {
  const types = (given: MigrationFacts) => (nextMigrationStatus(given).status.conditions ?? []).map(({ type }) => type);
  assert.deepEqual(types(facts('Running', { target: READY, vmi: state({ startTimestamp: 't' }), deleting: true })), [
    'migrationAbortRequested',
  ]);
  assert.deepEqual(types(facts('Scheduling', { target: READY, deleting: true })), ['migrationAbortRequested']);
  const rejected = { type: 'migrationRejectedByResourceQuota', status: 'True' };
  assert.deepEqual(types(facts('Pending', { quotaExceeded: true })), [rejected.type]);
  assert.deepEqual(types(facts('Pending', { quotaExceeded: true, conditions: [rejected] })), [rejected.type]);
  assert.deepEqual(types(facts('Scheduling', { target: READY, conditions: [rejected] })), []);
});

test('the migration names its source Pod while it waits, and keeps the last word of the instance', () => {
  assert.equal(nextMigrationStatus(facts('Pending', { sourcePod: 's' })).status.migrationState?.sourcePod, 's');
  const last = { ...MINE, completed: true, endTimestamp: 't' };
  assert.deepEqual(nextMigrationStatus(facts('Succeeded', { vmi: state(last) })).status.migrationState, last);
  const later = vmiOf({ migrationState: { migrationUid: 'next' } });
  assert.equal(nextMigrationStatus(facts('Succeeded', { vmi: later })).status.migrationState, undefined);
});
