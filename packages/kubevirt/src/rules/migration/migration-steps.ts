/**
 * What each end of a live migration does next. The write that decides is one compare-and-swap on the VMI's status: either
 * the target takes it over (`nodeName` = target, by the target) or the migration has failed (`migrationState.failed`, by
 * the source). Whoever is first wins; the other one finds it when its own write conflicts. So:
 *
 *   source: (none) -> sending -> sent -> [feeding] -> left     each is on disk before what it names may happen
 *   target: (none) -> receiving -> handing-over -> handed-over -> (none, an ordinary guest)
 *
 * In `sending` the target cannot take over: it is notified only after `sent` is on disk. From `sent` on the source asks the
 * API, or hears from the target itself that it let go. Nothing on the target runs before `handed-over`.
 *
 * In post-copy `sent` means that the guest stands still and its disks are over there, while some of its memory is only
 * here. The same write decides. After it the source gives the rest (`feeding`); it can never go back from there.
 */

import { isFinal } from '@coracle/apimachinery/meta/object-state';
import type { ReadonlyVmi } from '../../kinds/kubevirt.ts';

/** One migration and its ends. */
export interface MigrationEnds {
  /** UID of the VirtualMachineInstanceMigration. */
  readonly uid: string;
  /** UID of the VMI that moves. */
  readonly vmiUid: string;
  readonly sourceNode: string;
  readonly targetNode: string;
}

/**
 * `open`: nobody has decided. `handed-over`: the target owns the guest. `elsewhere`: a third node does, it moved on.
 * `failed`: it stays where it was. `superseded`: it is where it was and another migration is under way. `gone`: there is
 * no such VMI.
 */
export type MigrationDecision = 'open' | 'handed-over' | 'elsewhere' | 'failed' | 'superseded' | 'gone';

/** Reads the decision; `undefined` when the API says that the VMI does not exist. */
export function migrationDecision(vmi: ReadonlyVmi | undefined, ends: MigrationEnds): MigrationDecision {
  if (!vmi || vmi.metadata.uid !== ends.vmiUid) return 'gone';
  const { nodeName, migrationState: state, phase } = vmi.status ?? {};
  if (nodeName === ends.targetNode) return 'handed-over';
  if (nodeName && nodeName !== ends.sourceNode) return 'elsewhere';
  if (isFinal(phase)) return 'failed';
  if (state?.migrationUid !== ends.uid) return 'superseded';
  return state.failed === true || state.completed === true || state.endTimestamp != null ? 'failed' : 'open';
}

export type SourcePhase = 'sending' | 'sent' | 'feeding' | 'left';
export type TargetPhase = 'receiving' | 'handing-over' | 'handed-over';

export interface SourceView {
  readonly phase: SourcePhase;
  /** Part of the memory is still only here when the guest is handed over. */
  readonly postCopy: boolean;
  /** undefined while the API does not answer. */
  readonly decision: MigrationDecision | undefined;
  /** The target said that its QEMU is gone and that it has never tried to take over. */
  readonly released: boolean;
  /** The target can be heard, and has not given up. */
  readonly targetPresent: boolean;
  /** Waited longer for the hand-over than it may take. */
  readonly overdue: boolean;
}

/**
 * `resume`: undo what the migration changed, and let the guest run on. `record-failure`: write the failure into the VMI,
 * then ask again. `leave`: the guest is elsewhere; QEMU ends and never runs again. `feed`: the same, once QEMU has given
 * what is left of the memory. `wait`: as it is, stopped.
 */
export type SourceStep = 'resume' | 'record-failure' | 'leave' | 'feed' | 'wait';

export function nextSourceStep(view: SourceView): SourceStep {
  if (view.phase === 'left') return 'leave';
  if (view.phase === 'feeding') return 'feed';
  if (view.phase === 'sending' || view.released) return 'resume';
  switch (view.decision) {
    case 'handed-over':
      return view.postCopy ? 'feed' : 'leave';
    // `gone`: the VMI was removed by force, and nobody may run it.
    case 'elsewhere':
    case 'gone':
      return 'leave';
    case 'failed':
    case 'superseded':
      return 'resume';
    case 'open':
      return view.targetPresent && !view.overdue ? 'wait' : 'record-failure';
    case undefined:
      return 'wait';
  }
}

export interface TargetView {
  readonly phase: TargetPhase;
  readonly decision: MigrationDecision | undefined;
  /** QEMU is there. */
  readonly qemu: boolean;
  /** The source has said that it is stopped for good (`sent`). Always true in `handing-over`. */
  readonly sourceSent: boolean;
  /** The source can be heard. */
  readonly sourcePresent: boolean;
  /** The Pod is being deleted, or the agent gives up. */
  readonly unwanted: boolean;
}

/**
 * `receive`: go on taking the stream. `hand-over`: try the write that decides. `run`: let the guest run, it is ours.
 * `discard`: end QEMU; the source runs on. `lost`: it is ours and its QEMU is gone: it ends as Failed and is started anew.
 */
export type TargetStep = 'receive' | 'hand-over' | 'run' | 'discard' | 'lost' | 'wait';

export function nextTargetStep(view: TargetView): TargetStep {
  const { phase, decision, qemu } = view;
  if (phase === 'handed-over') return qemu ? 'run' : 'lost';
  if (phase === 'receiving') {
    // Never tried: it cannot be ours, whatever the API says.
    if (!qemu || view.unwanted || !view.sourcePresent) return 'discard';
    if (decision !== undefined && decision !== 'open') return 'discard';
    return view.sourceSent ? 'hand-over' : 'receive';
  }
  switch (decision) {
    case 'handed-over':
      return qemu ? 'run' : 'lost';
    case 'elsewhere':
    case 'failed':
    case 'superseded':
    case 'gone':
      return 'discard';
    case 'open':
      return qemu && !view.unwanted ? 'hand-over' : 'discard';
    // The answer to our own write may have been lost: only the API knows.
    case undefined:
      return 'wait';
  }
}
