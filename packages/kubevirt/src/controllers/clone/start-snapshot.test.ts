import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { CloneStatus } from '../../kinds/kubevirt.ts';
import { machineOf, type Objects, playPass, readyReason, SNAPSHOT, snapshotOf } from './clone-pass.fixture.ts';
import { startSnapshot } from './start-snapshot.ts';

const MISSING = 'Source doesnt exist: VirtualMachine ns/db';
const volumes = [{ name: 'root', persistentVolumeClaim: { claimName: 'root' } }];
const withVolume = (enabled?: boolean): Objects => ({
  machines: {
    db: machineOf(
      { volumes },
      { status: enabled === undefined ? {} : { volumeSnapshotStatuses: [{ name: 'root', enabled }] } },
    ),
  },
});
const UNKNOWN = 'Virtual Machine volume root snapshot support unknown';
const NEVER = 'Clone of source with backendstorage is not supported: VM ns/db';

interface Case {
  readonly name: string;
  readonly status?: CloneStatus;
  readonly objects?: Objects;
  readonly result: string;
  readonly phase?: string;
  readonly writes?: readonly string[];
  readonly event?: string;
  readonly ready?: string;
}

const made = {
  result: 'stop',
  phase: 'SnapshotInProgress',
  writes: [`create snapshot ${SNAPSHOT}`],
  event: `Normal SnapshotCreated created snapshot ${SNAPSHOT} for clone c`,
};
const cases: readonly Case[] = [
  { name: 'makes a snapshot of the source', objects: { machines: { db: machineOf() } }, ...made },
  { name: 'of one with volumes that can be saved', objects: withVolume(true), ...made },
  {
    name: 'waits for a source that is not there',
    result: 'stop',
    event: `Normal SourceDoesNotExist ${MISSING}`,
    ready: MISSING,
  },
  {
    name: 'does not begin with a source that is being deleted',
    objects: { machines: { db: machineOf({}, { metadata: { deletionTimestamp: 'now' } }) } },
    result: 'stop',
    event: `Normal SourceDoesNotExist ${MISSING}`,
    ready: MISSING,
  },
  {
    name: 'waits for volumes of which it is not known whether they can be saved',
    objects: withVolume(),
    result: 'stop',
    event: `Normal VMVolumeSnapshotsInvalid ${UNKNOWN}`,
    ready: UNKNOWN,
  },
  {
    name: 'waits for volumes that cannot be saved',
    objects: withVolume(false),
    result: 'stop',
    event: 'Normal VMVolumeSnapshotsInvalid Virtual Machine volume root does not support snapshots',
    ready: 'Virtual Machine volume root does not support snapshots',
  },
  {
    name: 'fails with a source that keeps firmware state',
    objects: { machines: { db: machineOf({ domain: { devices: { tpm: { persistent: true } } } }) } },
    result: 'stop',
    phase: 'Failed',
    event: `Normal SourceVMWithBackendStorageInvalid ${NEVER}`,
    ready: NEVER,
  },
  {
    name: 'takes up the snapshot of a pass that was cut off, also without its source',
    objects: { snapshots: { [SNAPSHOT]: snapshotOf({}) } },
    result: 'stop',
    phase: 'SnapshotInProgress',
  },
  {
    name: 'goes on when there is one',
    status: { phase: 'SnapshotInProgress', snapshotName: SNAPSHOT },
    result: 'continue',
    phase: 'SnapshotInProgress',
  },
  {
    name: 'is not asked any more once the restore has begun',
    status: { phase: 'RestoreInProgress' },
    result: 'continue',
    phase: 'RestoreInProgress',
  },
];

describe('startSnapshot()', () => {
  for (const { name, status, objects, result, phase, writes = [], event, ready } of cases)
    it(name, async () => {
      const played = playPass({ ...(status && { status }), ...(objects && { objects }) });
      assert.equal(await startSnapshot(played.pass), result);
      assert.equal(played.pass.status.phase, phase);
      assert.deepEqual(played.writes, writes);
      assert.deepEqual(played.events, event === undefined ? [] : [event]);
      assert.equal(readyReason(played.pass), ready);
      if (phase === 'SnapshotInProgress') assert.equal(played.pass.status.snapshotName, SNAPSHOT);
    });

  it('makes one that belongs to the clone, of the source', async () => {
    const { pass, created } = playPass({ objects: { machines: { db: machineOf() } } });
    await startSnapshot(pass);
    assert.deepEqual(created, [
      {
        apiVersion: 'snapshot.kubevirt.io/v1beta1',
        kind: 'VirtualMachineSnapshot',
        metadata: {
          name: SNAPSHOT,
          namespace: 'ns',
          ownerReferences: [
            {
              apiVersion: 'clone.kubevirt.io/v1beta1',
              kind: 'VirtualMachineClone',
              name: 'c',
              uid: 'uid-c',
              controller: true,
              blockOwnerDeletion: true,
            },
          ],
        },
        spec: { source: { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: 'db' } },
      },
    ]);
  });

  it('makes none of a snapshot', async () => {
    const { pass, writes } = playPass({ source: { kind: 'VirtualMachineSnapshot' } });
    assert.equal(await startSnapshot(pass), 'continue');
    assert.deepEqual(writes, []);
  });

  it("takes nobody else's snapshot for its own", async () => {
    const { pass } = playPass({ objects: { snapshots: { [SNAPSHOT]: snapshotOf({}, { metadata: { uid: 'x' } }) } } });
    await assert.rejects(startSnapshot(pass), /was not made by clone c/);
    assert.equal(pass.status.snapshotName, undefined);
  });

  it('writes no name down when the creation is refused', async () => {
    const { pass, events } = playPass({ objects: { machines: { db: machineOf() }, refusal: 'no' } });
    await assert.rejects(startSnapshot(pass), /no/);
    assert.deepEqual([pass.status.snapshotName, events], [undefined, []]);
  });
});
