import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { VirtualMachineInstance } from '../../kinds/kinds.ts';
import {
  type MigrationDecision,
  migrationDecision,
  nextSourceStep,
  nextTargetStep,
  type SourceView,
  type TargetView,
} from './migration-steps.ts';

const ENDS = { uid: 'm1', vmiUid: 'v1', sourceNode: 'one', targetNode: 'two' };
const vmi = (status: object, uid = 'v1'): VirtualMachineInstance =>
  ({ metadata: { uid }, spec: {}, status }) as unknown as VirtualMachineInstance;

test('migrationDecision(): what the API says decides', () => {
  const state = { migrationUid: 'm1' };
  const base = { phase: 'Running', nodeName: 'one', migrationState: state };
  const table: [string, VirtualMachineInstance | undefined, MigrationDecision][] = [
    ['no such object', undefined, 'gone'],
    ['another of that name', vmi(base, 'v2'), 'gone'],
    ['under way', vmi(base), 'open'],
    ['null timestamps count as none', vmi({ ...base, migrationState: { ...state, endTimestamp: null } }), 'open'],
    ['taken over', vmi({ ...base, nodeName: 'two' }), 'handed-over'],
    [
      'taken over, and later another migration',
      vmi({ ...base, nodeName: 'two', migrationState: { migrationUid: 'm2' } }),
      'handed-over',
    ],
    [
      'moved on to a third node',
      vmi({ ...base, nodeName: 'three', migrationState: { migrationUid: 'm2' } }),
      'elsewhere',
    ],
    ['failed', vmi({ ...base, migrationState: { ...state, failed: true } }), 'failed'],
    ['over', vmi({ ...base, migrationState: { ...state, endTimestamp: '2026-01-01T00:00:00Z' } }), 'failed'],
    ['the instance has ended', vmi({ ...base, phase: 'Failed' }), 'failed'],
    ['another migration', vmi({ ...base, migrationState: { migrationUid: 'm2' } }), 'superseded'],
    ['no migration any more', vmi({ phase: 'Running', nodeName: 'one' }), 'superseded'],
  ];
  for (const [name, object, wanted] of table) assert.equal(migrationDecision(object, ENDS), wanted, name);
});

// One row for each of the twelve steps of a hand-over (reliability.md 1.3) at which an end dies: its record, what the API
// says when it is back, and what it does.
test('crash points of the source', () => {
  const view = (change: Partial<SourceView>): SourceView => ({
    phase: 'sending',
    postCopy: false,
    decision: 'open',
    released: false,
    targetPresent: false,
    overdue: false,
    ...change,
  });
  const table: [string, Partial<SourceView>, string][] = [
    ['5-8: before everything was sent', {}, 'resume'],
    ['9: QEMU is done, the record does not say so', { decision: undefined }, 'resume'],
    ['9: sent, nobody knows whether the target took over', { phase: 'sent', decision: undefined }, 'wait'],
    ['9: sent, the target is silent', { phase: 'sent' }, 'record-failure'],
    ['9: sent, the target is there', { phase: 'sent', targetPresent: true }, 'wait'],
    ['9: sent, the target takes too long', { phase: 'sent', targetPresent: true, overdue: true }, 'record-failure'],
    ['9: the target let go, the API is down', { phase: 'sent', released: true, decision: undefined }, 'resume'],
    ['9: the failure is recorded', { phase: 'sent', decision: 'failed' }, 'resume'],
    ['10: taken over', { phase: 'sent', decision: 'handed-over' }, 'leave'],
    ['10: taken over and moved on', { phase: 'sent', decision: 'elsewhere' }, 'leave'],
    ['10: the instance was removed', { phase: 'sent', decision: 'gone' }, 'leave'],
    ['11-12: it has left, whatever the API says', { phase: 'left', decision: 'failed' }, 'leave'],
    ['11-12: it has left, the API is down', { phase: 'left', decision: undefined }, 'leave'],
    ['post-copy, 9: stopped, nobody knows', { phase: 'sent', postCopy: true, decision: undefined }, 'wait'],
    ['post-copy, 9: the target is silent', { phase: 'sent', postCopy: true }, 'record-failure'],
    ['post-copy, 9: the target let go', { phase: 'sent', postCopy: true, released: true }, 'resume'],
    ['post-copy, 9: it failed', { phase: 'sent', postCopy: true, decision: 'failed' }, 'resume'],
    ['post-copy, 10: taken over', { phase: 'sent', postCopy: true, decision: 'handed-over' }, 'feed'],
    ['post-copy, 10: the instance was removed', { phase: 'sent', postCopy: true, decision: 'gone' }, 'leave'],
    ['post-copy, 11: it gives, the API is down', { phase: 'feeding', postCopy: true, decision: undefined }, 'feed'],
    ['post-copy, 11: whatever the API says', { phase: 'feeding', postCopy: true, decision: 'failed' }, 'feed'],
    ['post-copy, 11: whatever the target says', { phase: 'feeding', postCopy: true, released: true }, 'feed'],
  ];
  for (const [name, change, wanted] of table) assert.equal(nextSourceStep(view(change)), wanted, name);
});

test('crash points of the target', () => {
  const view = (change: Partial<TargetView>): TargetView => ({
    phase: 'receiving',
    decision: 'open',
    qemu: true,
    sourceSent: false,
    sourcePresent: true,
    unwanted: false,
    ...change,
  });
  const table: [string, Partial<TargetView>, string][] = [
    ['6: the stream runs', {}, 'receive'],
    ['6: the API is down meanwhile', { decision: undefined }, 'receive'],
    ['3-8: its QEMU is gone', { qemu: false }, 'discard'],
    ['3-8: the agent comes back: the source cannot be heard', { sourcePresent: false }, 'discard'],
    ['3-8: the pod is being deleted', { unwanted: true }, 'discard'],
    ['3-8: the migration was given up', { decision: 'failed' }, 'discard'],
    ['9: all sent', { sourceSent: true }, 'hand-over'],
    ['9: all sent, the API is down', { sourceSent: true, decision: undefined }, 'hand-over'],
    ['10: the write may have happened', { phase: 'handing-over', decision: undefined }, 'wait'],
    ['10: the write did not happen', { phase: 'handing-over' }, 'hand-over'],
    ['10: it did not happen and is not wanted any more', { phase: 'handing-over', unwanted: true }, 'discard'],
    ['10: it happened', { phase: 'handing-over', decision: 'handed-over' }, 'run'],
    ['10: it happened and QEMU is gone', { phase: 'handing-over', decision: 'handed-over', qemu: false }, 'lost'],
    ['10: the source was first', { phase: 'handing-over', decision: 'failed' }, 'discard'],
    ['11: ours, the API is down', { phase: 'handed-over', decision: undefined }, 'run'],
    ['11: ours, QEMU is gone', { phase: 'handed-over', qemu: false }, 'lost'],
  ];
  for (const [name, change, wanted] of table) assert.equal(nextTargetStep(view(change)), wanted, name);
});

// S-195: Whatever ends in the middle of a migration (an agent, a QEMU, the API), one guest runs, never two.
test('never do both ends run: in no pair of records that the protocol can leave, whatever is seen of the API', () => {
  const flag = fc.boolean();
  // What is durable: who wrote the deciding record, if anybody did. Each end may or may not see it.
  fc.assert(
    fc.property(
      fc.constantFrom<MigrationDecision>('open', 'handed-over', 'failed'),
      fc.constantFrom<SourceView['phase']>('sending', 'sent', 'feeding', 'left'),
      fc.constantFrom<TargetView['phase']>('receiving', 'handing-over', 'handed-over'),
      flag,
      flag,
      fc.record({ postCopy: flag, targetPresent: flag, overdue: flag }),
      fc.record({ qemu: flag, sourcePresent: flag, unwanted: flag }),
      (truth, sourcePhase, targetPhase, sourceSees, targetSees, source, target) => {
        // States that cannot be: the target is notified only after `sent`, takes over only by the record, the source leaves by it.
        if (sourcePhase === 'sending' && (targetPhase !== 'receiving' || truth === 'handed-over')) return;
        if (sourcePhase === 'feeding' && !source.postCopy) return;
        if ((sourcePhase === 'left' || sourcePhase === 'feeding') && truth !== 'handed-over') return;
        if (targetPhase === 'handed-over' && truth !== 'handed-over') return;
        if (targetPhase === 'receiving' && truth === 'handed-over') return;
        const sourceStep = nextSourceStep({
          phase: sourcePhase,
          decision: sourceSees ? truth : undefined,
          released: false,
          ...source,
        });
        const targetStep = nextTargetStep({
          phase: targetPhase,
          decision: targetSees ? truth : undefined,
          sourceSent: sourcePhase !== 'sending',
          ...target,
        });
        assert.ok(!(sourceStep === 'resume' && targetStep === 'run'));
        if (truth === 'handed-over') assert.notEqual(sourceStep, 'resume');
        if (truth !== 'handed-over') assert.notEqual(targetStep, 'run');
      },
    ),
  );
});
