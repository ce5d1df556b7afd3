import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Objects, playPass, RESTORE, restoreOf, SNAPSHOT, snapshotOf } from './clone-pass.fixture.ts';
import { releaseHelpers } from './release-helpers.ts';

const snapshots = { [SNAPSHOT]: snapshotOf({}) };
const restores = {
  [RESTORE]: restoreOf({ restores: [{ persistentVolumeClaim: 'a' }, { persistentVolumeClaim: 'b' }] }),
};
const BOUND = { a: 'Bound', b: 'Bound' };
const ALL = [`delete restore ${RESTORE}`, `delete snapshot ${SNAPSHOT}`];
const others = { metadata: {} };

const cases: readonly [name: string, objects: Objects, writes: readonly string[], released: boolean][] = [
  ['waits for a claim that is not bound', { snapshots, restores, claims: { a: 'Bound', b: 'Pending' } }, [], false],
  ['lets both go when all claims are bound', { snapshots, restores, claims: BOUND }, ALL, true],
  ['waits for no claim that was deleted', { snapshots, restores, claims: { a: 'Bound' } }, ALL, true],
  ['lets both go of a target without claims', { snapshots, restores: { [RESTORE]: restoreOf({}) } }, ALL, true],
  ['lets the snapshot go after a pass that was cut off', { snapshots }, [`delete snapshot ${SNAPSHOT}`], true],
  ['forgets both after a pass that was cut off later', {}, [], true],
  [
    "leaves what is somebody else's",
    { snapshots: { [SNAPSHOT]: snapshotOf({}, others) }, restores: { [RESTORE]: restoreOf({}, others) } },
    [],
    true,
  ],
];

describe('releaseHelpers()', () => {
  for (const [name, objects, expected, released] of cases)
    it(name, async () => {
      const status = { phase: 'Succeeded', snapshotName: SNAPSHOT, restoreName: RESTORE } as const;
      const { pass, writes, events } = playPass({ status, objects });
      assert.equal(await releaseHelpers(pass), 'stop');
      assert.deepEqual(writes, expected);
      const { snapshotName, restoreName } = pass.status;
      assert.deepEqual([snapshotName, restoreName], released ? [undefined, undefined] : [SNAPSHOT, RESTORE]);
      const reported = released && objects.restores !== undefined;
      assert.deepEqual(events, reported ? ['Normal PVCBound all PVC for clone c are bound'] : []);
    });

  it("leaves a user's snapshot", async () => {
    const { pass, writes } = playPass({
      source: { kind: 'VirtualMachineSnapshot', name: 'mine' },
      status: { phase: 'Succeeded', restoreName: RESTORE },
      objects: { restores, claims: BOUND, snapshots: { mine: snapshotOf({}) } },
    });
    await releaseHelpers(pass);
    assert.deepEqual(writes, [`delete restore ${RESTORE}`]);
  });

  it('has nothing to do twice', async () => {
    const { pass, events } = playPass({ status: { phase: 'Succeeded', targetName: 'copy' } });
    assert.equal(await releaseHelpers(pass), 'stop');
    assert.deepEqual(events, []);
  });
});
