import assert from 'node:assert/strict';
import { test } from 'node:test';
import { migrationOf, podOf } from './migration.fixture.ts';
import { pendingTimeout } from './pending-timeout.ts';

const CREATED = Date.parse('2030-01-01T00:00:00Z');
const UNSCHEDULABLE = { conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable' }] };
const note = (name: string, value: string) => ({ metadata: { annotations: { [`kubevirt.io/${name}`]: value } } });

const CASES: readonly [what: string, migration: object, pod: object, seconds: number, decision: object][] = [
  ['young', {}, {}, 10, { unschedulable: false, checkInMs: 890_000 }],
  ['pending too long', {}, {}, 900, { unschedulable: false, expired: 'pending pod ns/p timeout period exceeded' }],
  ['unschedulable', {}, UNSCHEDULABLE, 10, { unschedulable: true, checkInMs: 290_000 }],
  [
    'unschedulable too long',
    {},
    UNSCHEDULABLE,
    300,
    { unschedulable: true, expired: 'unschedulable pod ns/p timeout period exceeded' },
  ],
  [
    'another limit',
    note('migrationUnschedulablePodTimeoutSeconds', '5'),
    UNSCHEDULABLE,
    5,
    { unschedulable: true, expired: 'unschedulable pod ns/p timeout period exceeded' },
  ],
  [
    'another whole limit',
    note('migrationPendingPodTimeoutSeconds', '7'),
    {},
    6,
    { unschedulable: false, checkInMs: 1000 },
  ],
  [
    'the whole limit is the shorter one',
    note('migrationPendingPodTimeoutSeconds', '7'),
    UNSCHEDULABLE,
    8,
    { unschedulable: true, expired: 'pending pod ns/p timeout period exceeded' },
  ],
  [
    'a limit that is no number',
    note('migrationPendingPodTimeoutSeconds', 'soon'),
    {},
    10,
    { unschedulable: false, checkInMs: 890_000 },
  ],
];
for (const [what, migration, status, seconds, decision] of CASES) {
  test(`pendingTimeout(): ${what}`, () => {
    const now = CREATED + seconds * 1000;
    assert.deepEqual(pendingTimeout(migrationOf('m', migration), podOf('Pending', { status }), now), decision);
  });
}

test('pendingTimeout() leaves a Pod that runs or goes alone', () => {
  const late = CREATED + 10_000_000;
  assert.deepEqual(pendingTimeout(migrationOf('m'), podOf('Running'), late), { unschedulable: false });
  const going = podOf('Pending', { metadata: { deletionTimestamp: 't' } });
  assert.deepEqual(pendingTimeout(migrationOf('m'), going, late), { unschedulable: false });
});
