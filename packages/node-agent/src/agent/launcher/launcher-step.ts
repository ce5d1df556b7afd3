/**
 * The stages of a launcher and which one follows: pure. Files, processes and the API are the business of the functions
 * that carry a stage out, one file each; what they come to is a `StageOutcome`.
 *
 *   look ----> adopt --------------------------> supervise ---> finish ---> gone
 *     |                                              ^             ^
 *     +------> claim ----> cold-start, receive ------+             |
 *     |        ^   |              |                                |
 *     |        +---+-- (again) ---+                                |
 *     +----------- orphan -----------------------------------------+
 *
 * Each of them leads to `finish` as soon as it is known how the guest ends.
 */
import type { ProcessIdentity } from '@coracle/runtime/process/identity';
import type { VmRecord } from './vm-record.ts';
import type { VmResult } from './vm-result.ts';

/** A QEMU whose record cannot be read; without a process it has ended since, and only the damaged record is left. */
export interface Orphan {
  readonly process: ProcessIdentity | undefined;
}

/** What a launcher does now. `attempt` counts the failures before, from 0. */
export type LauncherStage =
  /** Reads what is on disk and what the Pod says of its end. */
  | { readonly type: 'look' }
  /** Makes sure that this Pod may start its guest, and has the directory of the VM to itself. */
  | { readonly type: 'claim'; readonly attempt: number }
  /** Leaves a QEMU alone whose record cannot be read, until it has ended. */
  | { readonly type: 'orphan'; readonly orphan: Orphan }
  /** Plan, volumes, record, QEMU. */
  | { readonly type: 'cold-start'; readonly attempt: number }
  /** The same, with a QEMU that waits for the guest of another node. */
  | { readonly type: 'receive'; readonly attempt: number }
  /** Takes over what an earlier agent started. */
  | { readonly type: 'adopt'; readonly record: VmRecord }
  /** Reports the guest, and ends it when that is requested. */
  | { readonly type: 'supervise' }
  /** Records and reports the result, removes the files, waits for the end of the Pod. */
  | { readonly type: 'finish'; readonly result: VmResult }
  | { readonly type: 'gone' };

/** What a stage came to. */
export type StageOutcome =
  /** Nothing is on disk: the guest has not been started. */
  | { readonly type: 'unstarted' }
  | { readonly type: 'recorded'; readonly record: VmRecord }
  | { readonly type: 'orphaned'; readonly orphan: Orphan }
  /** `target`: the guest comes from another node. */
  | { readonly type: 'claimed'; readonly role: 'own' | 'target' }
  /** An earlier guest of the name has ended meanwhile: what was read before may have changed. */
  | { readonly type: 'waited' }
  /** A failure that may pass; it was reported, and its pause is over. */
  | { readonly type: 'failed' }
  | { readonly type: 'runs' }
  | { readonly type: 'ended'; readonly result: VmResult }
  | { readonly type: 'finished' };

type OutcomeOf<T extends StageOutcome['type']> = Extract<StageOutcome, { readonly type: T }>;

/** What each stage can come to. */
export interface StageOutcomes {
  readonly look: OutcomeOf<'unstarted' | 'recorded' | 'orphaned' | 'ended'>;
  readonly claim: OutcomeOf<'claimed' | 'waited' | 'failed' | 'orphaned' | 'ended'>;
  readonly orphan: OutcomeOf<'ended'>;
  readonly 'cold-start': OutcomeOf<'runs' | 'failed' | 'ended'>;
  readonly receive: OutcomeOf<'runs' | 'failed' | 'ended'>;
  readonly adopt: OutcomeOf<'runs' | 'ended'>;
  readonly supervise: OutcomeOf<'ended'>;
  readonly finish: OutcomeOf<'finished'>;
  readonly gone: never;
}

/** The stage in which a launcher begins. */
export const FIRST_STAGE: LauncherStage = { type: 'look' };

export const ended = (result: VmResult): OutcomeOf<'ended'> => ({ type: 'ended', result });

/** The stage that follows. @throws RangeError for an outcome that the stage does not have (`StageOutcomes`) */
export function nextStage(stage: LauncherStage, outcome: StageOutcome): LauncherStage {
  if (outcome.type === 'ended' && stage.type !== 'finish' && stage.type !== 'gone')
    return { type: 'finish', result: outcome.result };
  switch (stage.type) {
    case 'look':
      if (outcome.type === 'recorded') return { type: 'adopt', record: outcome.record };
      if (outcome.type === 'orphaned') return { type: 'orphan', orphan: outcome.orphan };
      if (outcome.type === 'unstarted') return { type: 'claim', attempt: 0 };
      break;
    case 'claim':
      if (outcome.type === 'orphaned') return { type: 'orphan', orphan: outcome.orphan };
      if (outcome.type === 'waited') return stage;
      if (outcome.type === 'failed') return { type: 'claim', attempt: stage.attempt + 1 };
      if (outcome.type === 'claimed')
        return { type: outcome.role === 'target' ? 'receive' : 'cold-start', attempt: stage.attempt };
      break;
    case 'cold-start':
    case 'receive':
      if (outcome.type === 'runs') return { type: 'supervise' };
      if (outcome.type === 'failed') return { type: 'claim', attempt: stage.attempt + 1 };
      break;
    case 'adopt':
      if (outcome.type === 'runs') return { type: 'supervise' };
      break;
    case 'finish':
      if (outcome.type === 'finished') return { type: 'gone' };
      break;
  }
  throw new RangeError(`stage "${stage.type}" of a launcher has no outcome "${outcome.type}"`);
}
