import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ended, type LauncherStage, nextStage, type Orphan, type StageOutcome } from './launcher-step.ts';
import type { VmRecord } from './vm-record.ts';
import type { VmResult } from './vm-result.ts';

const result: VmResult = { phase: 'Succeeded', reason: 'Completed', message: 'the guest shut down', exitCode: 0 };
const record = { vmiUid: 'u' } as VmRecord;
const orphan: Orphan = { process: undefined };

const STAGES: readonly LauncherStage[] = [
  { type: 'look' },
  { type: 'claim', attempt: 2 },
  { type: 'orphan', orphan },
  { type: 'cold-start', attempt: 2 },
  { type: 'receive', attempt: 2 },
  { type: 'adopt', record },
  { type: 'supervise' },
  { type: 'finish', result },
  { type: 'gone' },
];
const OUTCOMES: readonly StageOutcome[] = [
  { type: 'unstarted' },
  { type: 'recorded', record },
  { type: 'orphaned', orphan },
  { type: 'claimed', role: 'own' },
  { type: 'claimed', role: 'target' },
  { type: 'waited' },
  { type: 'failed' },
  { type: 'runs' },
  ended(result),
  { type: 'finished' },
];

const nameOf = (outcome: StageOutcome): string =>
  outcome.type === 'claimed' ? `claimed as ${outcome.role}` : outcome.type;

/** Every step there is; a pair of stage and outcome that is not here is refused. */
const STEPS: Readonly<Record<LauncherStage['type'], Readonly<Record<string, LauncherStage>>>> = {
  look: {
    unstarted: { type: 'claim', attempt: 0 },
    recorded: { type: 'adopt', record },
    orphaned: { type: 'orphan', orphan },
    ended: { type: 'finish', result },
  },
  claim: {
    'claimed as own': { type: 'cold-start', attempt: 2 },
    'claimed as target': { type: 'receive', attempt: 2 },
    waited: { type: 'claim', attempt: 2 },
    failed: { type: 'claim', attempt: 3 },
    orphaned: { type: 'orphan', orphan },
    ended: { type: 'finish', result },
  },
  orphan: { ended: { type: 'finish', result } },
  'cold-start': {
    runs: { type: 'supervise' },
    failed: { type: 'claim', attempt: 3 },
    ended: { type: 'finish', result },
  },
  receive: {
    runs: { type: 'supervise' },
    failed: { type: 'claim', attempt: 3 },
    ended: { type: 'finish', result },
  },
  adopt: { runs: { type: 'supervise' }, ended: { type: 'finish', result } },
  supervise: { ended: { type: 'finish', result } },
  finish: { finished: { type: 'gone' } },
  gone: {},
};

describe('nextStage()', () => {
  for (const stage of STAGES)
    for (const outcome of OUTCOMES) {
      const next = STEPS[stage.type][nameOf(outcome)];
      it(`${stage.type}, ${nameOf(outcome)}: ${next?.type ?? 'refused'}`, () => {
        if (next) assert.deepEqual(nextStage(stage, outcome), next);
        else assert.throws(() => nextStage(stage, outcome), RangeError);
      });
    }

  it('a guest that runs is never started again: nothing leads from there back to a claim', () => {
    const reached = new Set<string>();
    const walk = (stage: LauncherStage): void => {
      if (reached.has(stage.type)) return;
      reached.add(stage.type);
      for (const outcome of OUTCOMES) if (STEPS[stage.type][nameOf(outcome)]) walk(nextStage(stage, outcome));
    };
    walk({ type: 'supervise' });
    assert.deepEqual([...reached], ['supervise', 'finish', 'gone']);
  });
});
