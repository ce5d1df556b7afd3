import type { ReadonlyVmi } from '@coracle/kubevirt/kinds/kinds';
import { podCard } from '@coracle/kubevirt/rules/machine/interfaces';
import { nextSourceStep } from '@coracle/kubevirt/rules/migration/migration-steps';
import { QmpError } from '../../qmp/qmp-connection.ts';
import type { Guest } from '../guest/guest.ts';
import { hasEnded } from '../guest/run-state.ts';
import type { LauncherState } from '../launcher/launcher-state.ts';
import type { VmRecord } from '../launcher/vm-record.ts';
import { resultOf, type VmResult } from '../launcher/vm-result.ts';
import type { ControlChannel, SourceMessage, TargetMessage } from './channel.ts';
import { feedTarget } from './feed-target.ts';
import {
  API_POLL_MS,
  ask,
  enter,
  leaveMigration,
  recordFailure,
  report,
  reportFailure,
  type SourceRecord,
} from './migration-record.ts';
import { sourceAborting, sourceFailed } from './migration-status.ts';
import { mirrorJob, remoteNode } from './qemu-migration.ts';

export type SourceControl = ControlChannel<TargetMessage, SourceMessage>;

/** After this long without a hand-over the source takes the guest back, if the API still says that it may. */
const HAND_OVER_MS = 30_000;
const RELEASE_MS = 5000;
const SETTLE_MS = 10_000;
const SETTLE_POLL_MS = 50;

export type SendOutcome = 'left' | 'stays';

/** What the rollback has to undo. */
export interface Undo {
  control: SourceControl | undefined;
  /** Ends what QEMU sends memory and disks over; before that something may be on its way. */
  readonly closeStreams?: () => Promise<void>;
  /** The target let go, for this reason. */
  released?: string;
  /** The target said that the API gave it the guest. */
  handedOver?: boolean;
}

interface Settling {
  readonly outgoing: { readonly uid: string };
  readonly undo: Undo;
  readonly failure?: { readonly reason: string; readonly aborted: boolean };
}

/** Finds out what became of a migration that an earlier agent was in the middle of. */
export function recoverSender(launcher: LauncherState, guest: Guest): Promise<SendOutcome> {
  const { uid, phase } = (launcher.record as VmRecord).migration as SourceRecord;
  const failure = { reason: 'the agent of the source node was restarted', aborted: false };
  return settle(launcher, guest, {
    outgoing: { uid },
    undo: { control: undefined },
    ...(phase === 'sending' && { failure }),
  });
}

/** The result of a guest that has moved to another node. */
export const movedAway = (record: VmRecord): VmResult => ({
  phase: 'Succeeded',
  reason: 'Completed',
  message: `the guest was moved to node ${record.migration?.peerNode ?? ''}`,
  exitCode: 0,
});

/** An agent that comes back to a guest that was sent, whose QEMU has ended meanwhile: it is lost, or elsewhere. */
export async function resumeSent(launcher: LauncherState): Promise<VmResult> {
  const { environment } = launcher;
  const record = launcher.record as VmRecord;
  const migration = record.migration as SourceRecord;
  const begun = environment.clock.monotonic();
  for (;;) {
    const { decision, vmi } = await ask(launcher);
    const waited = environment.clock.monotonic() - begun;
    const step = nextSourceStep({
      phase: 'sent',
      // Without QEMU there is nothing left to give.
      postCopy: false,
      decision,
      released: false,
      targetPresent: waited < 2 * RELEASE_MS,
      overdue: waited > 2 * RELEASE_MS,
    });
    if (step === 'leave') {
      await enter(launcher, { ...migration, phase: 'left' });
      return movedAway(record);
    }
    if (step === 'resume') return resultOf({});
    const at = { reason: 'QEMU of the source node ended', aborted: false, now: environment.clock.now() };
    if (step === 'record-failure')
      await recordFailure(launcher, vmi as ReadonlyVmi, sourceFailed(vmi as ReadonlyVmi, migration.uid, at));
    else await environment.clock.sleep(API_POLL_MS, environment.signal);
  }
}

/** Ends the migration for good, by the rules of the record and the API. */
export async function settle(launcher: LauncherState, guest: Guest, settling: Settling): Promise<SendOutcome> {
  const { environment } = launcher;
  const { clock, signal } = environment;
  const { undo, outgoing } = settling;
  const { control } = undo;
  const migration = launcher.record?.migration as SourceRecord | undefined;
  let failure = settling.failure;
  const fail = (reason: string): { reason: string; aborted: boolean } => {
    failure ??= { reason, aborted: false };
    return failure;
  };
  if (failure?.aborted) await report(launcher, (vmi) => sourceAborting(vmi, outgoing.uid)).catch(() => {});
  if (!migration) {
    // QEMU got no command yet.
    control?.send({ type: 'cancel', reason: fail('not begun').reason });
    await reportFailure(launcher, outgoing.uid, fail('not begun'));
    return 'stays';
  }
  const begun = clock.monotonic();
  const patience = control?.open ? HAND_OVER_MS : 2 * RELEASE_MS;
  const released = (): boolean => undo.released !== undefined;
  if (migration.phase === 'sending') {
    // The reason first: of a stream that ends the target's QEMU can only say that it ended.
    control?.send({ type: 'cancel', reason: fail('stopped').reason });
    await undo.closeStreams?.();
  }
  for (;;) {
    signal.throwIfAborted();
    const now = launcher.record?.migration as SourceRecord;
    const isAsked = !undo.handedOver && now.phase === 'sent' && !released();
    const { decision, vmi } = isAsked ? await ask(launcher) : {};
    const step = nextSourceStep({
      phase: now.phase,
      postCopy: now.postCopy === true,
      decision: undo.handedOver ? 'handed-over' : decision,
      released: released(),
      targetPresent: control?.open ?? clock.monotonic() - begun < patience,
      overdue: clock.monotonic() - begun > patience,
    });
    switch (step) {
      case 'feed':
        // On disk before QEMU gives anything away: from here on the guest never runs here again.
        if (now.phase !== 'feeding') await enter(launcher, { ...now, phase: 'feeding' });
        await feedTarget(launcher, guest, () => control?.open === true);
        await enter(launcher, { ...now, phase: 'left' });
        return 'left';
      case 'leave':
        await enter(launcher, { ...now, phase: 'left' });
        return 'left';
      case 'record-failure': {
        const at = { ...fail('the target did not take the guest over'), now: clock.now() };
        await recordFailure(launcher, vmi as ReadonlyVmi, sourceFailed(vmi as ReadonlyVmi, outgoing.uid, at));
        break;
      }
      case 'resume': {
        // The target's QEMU first: it may hold the ports of the guest's address. Not for long: it cannot run anyway.
        if (now.phase === 'sending' && control?.open) {
          const limit = clock.monotonic() + RELEASE_MS;
          while (control.open && !released() && clock.monotonic() < limit) await clock.sleep(SETTLE_POLL_MS, signal);
        }
        await undo.closeStreams?.();
        const exited = await undoAll(launcher, guest, now.wasRunning);
        await leaveMigration(launcher);
        await reportFailure(launcher, outgoing.uid, fail(`the target gave up: ${undo.released ?? 'no reason given'}`));
        if (exited) launcher.log.error('guest ended while it was to move');
        return 'stays';
      }
      case 'wait':
        await clock.sleep(undo.handedOver ? 0 : API_POLL_MS, signal);
        break;
    }
  }
}

/** Hears whether the target lets go or has taken over. Ends with the connection. */
export async function listen(
  control: SourceControl,
  on: { readonly released: (reason: string) => void; readonly handedOver: () => void },
): Promise<void> {
  for (let message = await control.next(); message; message = await control.next()) {
    if (message.type === 'released') on.released(message.reason);
    if (message.type === 'handed-over') on.handedOver();
  }
}

/** Undoes what the migration changed in QEMU, and lets the guest run. True when QEMU is gone. */
async function undoAll(launcher: LauncherState, guest: Guest, wasRunning: boolean): Promise<boolean> {
  const { clock, signal } = launcher.environment;
  const deadline = clock.monotonic() + SETTLE_MS;
  // Whichever of them were mirrored: an agent that was restarted does not know.
  const indexes = (launcher.record?.plan.disks ?? []).map((disk, at) => disk.node ?? at);
  const again = (): Promise<void> => clock.sleep(SETTLE_POLL_MS, signal);
  for (;;) {
    if (guest.state.exit !== undefined) return true;
    try {
      const qmp = guest.qmp();
      const { status } = await qmp.execute('query-migrate');
      if (status !== undefined && !['none', 'completed', 'failed', 'cancelled'].includes(status)) {
        if (status !== 'cancelling') await qmp.execute('migrate_cancel');
        await again();
        continue;
      }
      const jobs = await qmp.execute('query-block-jobs');
      const ours = jobs.filter(({ device }) => indexes.some((index) => mirrorJob(index) === device));
      if (ours.length > 0) {
        for (const { device } of ours)
          await qmp.execute('block-job-cancel', { device, force: true }).catch(ignoreRefusal);
        await again();
        continue;
      }
      for (const index of indexes)
        await qmp.execute('blockdev-del', { 'node-name': remoteNode(index) }).catch(ignoreRefusal);
      // What the target's QEMU still holds is `keepPorts`' to get back; the guest does not stand still for it.
      await guest.forwarder?.load();
      await guest.forwarder?.forward(podCard(launcher.record?.plan)?.ports ?? [], []);
      await guest.refresh();
      // One that has ended meanwhile stays as it is, to be seen.
      const { runState } = guest.state;
      if (wasRunning && runState !== 'running' && !hasEnded(runState)) await qmp.execute('cont');
      await guest.refresh();
      return false;
    } catch (error) {
      signal.throwIfAborted();
      if (clock.monotonic() > deadline)
        launcher.log.error('guest not let run after a failed migration; tried again', {
          error: (error as Error).message,
        });
      await again();
    }
  }
}

const ignoreRefusal = (error: unknown): void => {
  if (!(error instanceof QmpError && error.failure === 'refused')) throw error;
};
