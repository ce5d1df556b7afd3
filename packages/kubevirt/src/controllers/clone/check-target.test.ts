import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { checkTarget } from './check-target.ts';
import { type Objects, playPass, readyReason } from './clone-pass.fixture.ts';

const THERE: Objects = { machines: { copy: {} } };

describe('checkTarget()', () => {
  it('succeeds with the target, and lets nothing go before that is stored', async () => {
    const { pass, events } = playPass({ status: { phase: 'CreatingTargetVM', targetName: 'copy' }, objects: THERE });
    assert.equal(await checkTarget(pass), 'stop');
    assert.deepEqual([pass.status.phase, pass.status.creationTime], ['Succeeded', '1970-01-01T00:00:00Z']);
    assert.equal(readyReason(pass), 'Ready');
    assert.deepEqual(events, ['Normal TargetVMCreated created target VM copy for clone c']);
  });

  it('says so once', async () => {
    const { pass, events } = playPass({ status: { phase: 'Succeeded', targetName: 'copy' }, objects: THERE });
    assert.equal(await checkTarget(pass), 'continue');
    assert.deepEqual([events, pass.status.creationTime], [[], undefined]);
  });

  for (const phase of ['CreatingTargetVM', 'Succeeded'] as const)
    it(`takes the clone away when the target was deleted in phase ${phase}`, async () => {
      const { pass, writes, events } = playPass({ status: { phase, targetName: 'copy' } });
      assert.equal(await checkTarget(pass), 'stop');
      assert.deepEqual([writes, events], [['delete clone c'], []]);
    });

  it('does nothing in any other phase', async () => {
    for (const status of [{}, { phase: 'Unknown' }, { phase: 'RestoreInProgress' }] as const) {
      const { pass, writes } = playPass({ status });
      assert.equal(await checkTarget(pass), 'stop');
      assert.deepEqual(writes, []);
    }
  });
});
