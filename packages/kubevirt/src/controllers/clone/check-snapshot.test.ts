import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { checkSnapshot } from './check-snapshot.ts';
import { contentOf, type Objects, playPass, readyReason, SNAPSHOT, snapshotOf } from './clone-pass.fixture.ts';

interface Case {
  readonly name: string;
  readonly objects: Objects;
  readonly result: string;
  readonly phase?: string;
  readonly event?: string;
  readonly type?: string;
}

const READY = { readyToUse: true, phase: 'Succeeded' };
const withSnapshot = (name: string, status: object, content?: object, rest?: object): Objects => ({
  snapshots: { [name]: snapshotOf(status, rest) },
  ...(content && { contents: { content } }),
});
const GOING = { metadata: { deletionTimestamp: 'now' } };

const ofBoth = (name: string): Case[] => [
  {
    name: 'waits until it is ready',
    objects: withSnapshot(name, { readyToUse: false }),
    result: 'stop',
    phase: 'SnapshotInProgress',
  },
  {
    name: 'goes on with one that is ready',
    objects: withSnapshot(name, READY, contentOf(['a'])),
    result: 'continue',
    phase: 'RestoreInProgress',
    event: `SnapshotReady snapshot ${name} for clone c is ready to use`,
  },
  {
    name: 'fails with one that failed',
    objects: withSnapshot(name, { phase: 'Failed', error: { message: 'deadline' } }),
    result: 'stop',
    phase: 'Failed',
    type: 'Warning',
    event: `SnapshotFailed snapshot ${name} for clone c failed: deadline`,
  },
  {
    name: 'fails with one whose content is gone',
    objects: withSnapshot(name, READY),
    result: 'stop',
    phase: 'Failed',
    event: 'SnapshotContentInvalid snapshot content content in namespace ns does not exist',
  },
  {
    name: 'fails with one that misses a volume',
    objects: withSnapshot(name, READY, contentOf(['a', 'b'], ['b'])),
    result: 'stop',
    phase: 'Failed',
    event: `SnapshotContentInvalid volume a is not backed up in snapshot ${SNAPSHOT}`,
  },
];

const run = async (
  { objects, result, phase, event, type = 'Normal' }: Case,
  options: Parameters<typeof playPass>[0],
) => {
  const { pass, events } = playPass({ ...options, objects });
  assert.equal(await checkSnapshot(pass), result);
  assert.equal(pass.status.phase, phase);
  assert.deepEqual(events, event === undefined ? [] : [`${type} ${event}`]);
  if (phase === 'Failed') assert.equal(readyReason(pass), event?.slice(event.indexOf(' ') + 1));
};

describe('checkSnapshot() of one that the clone made', () => {
  const status = { phase: 'SnapshotInProgress', snapshotName: SNAPSHOT } as const;
  const lost = {
    result: 'stop',
    phase: 'Failed',
    event: `SnapshotDeleted snapshot ${SNAPSHOT} does not exist anymore`,
  };
  const cases: Case[] = [
    ...ofBoth(SNAPSHOT),
    { name: 'fails when it was deleted', objects: {}, ...lost },
    { name: 'fails when it is being deleted', objects: withSnapshot(SNAPSHOT, READY, contentOf(), GOING), ...lost },
  ];
  for (const one of cases) it(one.name, () => run(one, { status }));
});

describe("checkSnapshot() of a user's", () => {
  const source = { apiGroup: 'snapshot.kubevirt.io', kind: 'VirtualMachineSnapshot', name: 'mine' };
  const lost = { result: 'stop', event: 'SourceDoesNotExist Source doesnt exist: VirtualMachineSnapshot ns/mine' };
  const cases: Case[] = [
    ...ofBoth('mine'),
    { name: 'waits for one that is not there', objects: {}, ...lost },
    {
      name: 'does not begin with one that is being deleted',
      objects: withSnapshot('mine', READY, contentOf(), GOING),
      ...lost,
    },
  ];
  for (const one of cases) it(one.name, () => run(one, { source }));
});

it('checkSnapshot() finds a content that is not named yet by the UID of its snapshot', async () => {
  const { pass } = playPass({
    status: { phase: 'SnapshotInProgress', snapshotName: SNAPSHOT },
    objects: {
      snapshots: { [SNAPSHOT]: snapshotOf({ ...READY, virtualMachineSnapshotContentName: undefined }) },
      contents: { 'vmsnapshot-content-uid-s': contentOf() },
    },
  });
  assert.equal(await checkSnapshot(pass), 'continue');
});
