import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { checkRestore } from './check-restore.ts';
import { type Objects, playPass, RESTORE, restoreOf, SNAPSHOT, snapshotOf } from './clone-pass.fixture.ts';

const snapshots = { [SNAPSHOT]: snapshotOf({}) };
const withRestore = (status: object): Objects => ({ snapshots, restores: { [RESTORE]: restoreOf(status) } });
const failure = (message: string, status = 'True') => ({ conditions: [{ type: 'Failure', status, message }] });

const cases: readonly [name: string, objects: Objects, result: string, phase: string, event: string | undefined][] = [
  ['waits until it is complete', withRestore({ complete: false }), 'stop', 'RestoreInProgress', undefined],
  ['waits for one without a status', withRestore({}), 'stop', 'RestoreInProgress', undefined],
  [
    'goes on with one that is complete',
    withRestore({ complete: true }),
    'continue',
    'CreatingTargetVM',
    `Normal RestoreReady restore ${RESTORE} for clone c is ready to use`,
  ],
  [
    'fails with one that failed',
    withRestore(failure('patch')),
    'stop',
    'Failed',
    `Warning RestoreFailed restore ${RESTORE} for clone c failed: patch`,
  ],
  ['waits for one that has not failed', withRestore(failure('', 'False')), 'stop', 'RestoreInProgress', undefined],
  [
    'fails when it was deleted',
    { snapshots },
    'stop',
    'Failed',
    `Warning RestoreDeleted restore ${RESTORE} does not exist anymore`,
  ],
  [
    'fails when the snapshot was deleted before its end',
    { restores: { [RESTORE]: restoreOf({}) } },
    'stop',
    'Failed',
    `Normal SnapshotDeleted snapshot ${SNAPSHOT} does not exist anymore`,
  ],
  [
    'goes on without the snapshot at its end',
    { restores: { [RESTORE]: restoreOf({ complete: true }) } },
    'continue',
    'CreatingTargetVM',
    `Normal RestoreReady restore ${RESTORE} for clone c is ready to use`,
  ],
];

describe('checkRestore()', () => {
  for (const [name, objects, result, phase, event] of cases)
    it(name, async () => {
      const status = { phase: 'RestoreInProgress', snapshotName: SNAPSHOT, restoreName: RESTORE } as const;
      const { pass, events } = playPass({ status, objects });
      assert.equal(await checkRestore(pass), result);
      assert.equal(pass.status.phase, phase);
      assert.deepEqual(events, event === undefined ? [] : [event]);
      assert.equal(pass.status.targetName, phase === 'CreatingTargetVM' ? 'copy' : undefined);
    });

  it('tells what holds the restore up', async () => {
    const conditions = [{ type: 'Progressing', status: 'False', reason: 'error patching VM copy' }];
    const status = { phase: 'RestoreInProgress', snapshotName: SNAPSHOT, restoreName: RESTORE } as const;
    const { pass } = playPass({ status, objects: withRestore({ conditions }) });
    assert.equal(await checkRestore(pass), 'stop');
    const [progressing] = pass.status.conditions ?? [];
    assert.deepEqual(
      [progressing?.status, progressing?.message],
      ['True', `restore ${RESTORE}: error patching VM copy`],
    );
  });
});
