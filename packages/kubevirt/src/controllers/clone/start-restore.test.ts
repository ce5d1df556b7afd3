import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { VirtualMachineRestore } from '../../kinds/kubevirt.ts';
import { contentOf, type Objects, playPass, RESTORE, restoreOf, SNAPSHOT, snapshotOf } from './clone-pass.fixture.ts';
import { startRestore } from './start-restore.ts';

const status = { phase: 'RestoreInProgress', snapshotName: SNAPSHOT } as const;
const saved: Objects = { snapshots: { [SNAPSHOT]: snapshotOf({}) }, contents: { content: contentOf() } };

describe('startRestore()', () => {
  it('makes a restore of the snapshot to the target, with patches', async () => {
    const { pass, created, events } = playPass({
      status,
      objects: saved,
      spec: { volumeNamePolicy: 'PrefixTargetName', patches: ['mine'] },
    });
    assert.equal(await startRestore(pass), 'stop');
    assert.equal(pass.status.restoreName, RESTORE);
    assert.deepEqual(events, [`Normal RestoreCreated created restore ${RESTORE} for clone c`]);
    const [{ metadata, spec }] = created as [VirtualMachineRestore];
    assert.deepEqual([metadata.name, metadata.namespace, metadata.ownerReferences?.[0]?.uid], [RESTORE, 'ns', 'uid-c']);
    assert.deepEqual(
      { ...spec, patches: spec.patches?.length },
      {
        target: { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: 'copy' },
        virtualMachineSnapshotName: SNAPSHOT,
        volumeRestorePolicy: 'PrefixTargetName',
        patches: 2,
      },
    );
    assert.equal(spec.patches?.at(-1), 'mine');
    assert.equal(metadata.annotations?.['coracle.dev/include-memory'], 'false', 'the target boots');
  });

  it("restores a user's snapshot, and leaves the policy of names open", async () => {
    const source = { kind: 'VirtualMachineSnapshot', name: 'mine' };
    const objects = { ...saved, snapshots: { mine: snapshotOf({}) } };
    const { pass, created } = playPass({ status: { phase: 'RestoreInProgress' }, source, objects });
    await startRestore(pass);
    const [{ spec }] = created as [VirtualMachineRestore];
    assert.equal(spec.virtualMachineSnapshotName, 'mine');
    assert.ok(!('volumeRestorePolicy' in spec));
  });

  it('takes up the restore of a pass that was cut off, where a second one would be refused', async () => {
    const objects = { ...saved, restores: { [RESTORE]: restoreOf({}) }, refusal: 'the target exists' };
    const { pass, writes, events } = playPass({ status, objects });
    assert.equal(await startRestore(pass), 'stop');
    assert.deepEqual([pass.status.restoreName, writes, events], [RESTORE, [], []]);
  });

  it("takes nobody else's restore for its own", async () => {
    const objects = { ...saved, restores: { [RESTORE]: restoreOf({}, { metadata: {} }) } };
    await assert.rejects(startRestore(playPass({ status, objects }).pass), /was not made by clone c/);
  });

  it('tells of a refusal, and tries again', async () => {
    const { pass, events } = playPass({ status, objects: { ...saved, refusal: 'target VM must not exist' } });
    await assert.rejects(startRestore(pass), /must not exist/);
    assert.deepEqual(events, [
      `Warning RestoreCreationFailed failed creating restore ${RESTORE} for clone c: target VM must not exist`,
    ]);
    assert.deepEqual([pass.status.phase, pass.status.restoreName], ['RestoreInProgress', undefined]);
  });

  it('fails when the snapshot was deleted', async () => {
    const { pass, events } = playPass({ status });
    assert.equal(await startRestore(pass), 'stop');
    assert.equal(pass.status.phase, 'Failed');
    assert.deepEqual(events, [`Normal SnapshotDeleted snapshot ${SNAPSHOT} does not exist anymore`]);
  });

  it('goes on when there is one, and when it is too early', async () => {
    for (const other of [{ ...status, restoreName: RESTORE }, { phase: 'CreatingTargetVM' } as const, {}])
      assert.equal(await startRestore(playPass({ status: other }).pass), 'continue');
  });
});
