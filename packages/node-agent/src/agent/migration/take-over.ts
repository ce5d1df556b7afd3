/**
 * How a migration ends for its target: by the one write to the VMI that decides, tried until it is known whether it
 * happened. Also the way back in for an agent that was restarted.
 */
import { join } from 'node:path';
import { VIRTUAL_MACHINE_INSTANCES, type VirtualMachineInstance } from '@coracle/kubevirt/kinds/kinds';
import { nextTargetStep } from '@coracle/kubevirt/rules/migration/migration-steps';
import { keepTpmState } from '../../disk/firmware-files.ts';
import { tpmStateOf } from '../../tpm/swtpm.ts';
import type { Guest } from '../guest/guest.ts';
import { hasEnded } from '../guest/run-state.ts';
import { patchStatus } from '../launcher/api-writes.ts';
import type { LauncherState } from '../launcher/launcher-state.ts';
import { connectNetwork } from '../launcher/start-vm.ts';
import { endProcess } from '../launcher/stop-vm.ts';
import { type MigrationRecord, type VmRecord, writeRecord } from '../launcher/vm-record.ts';
import type { VmResult } from '../launcher/vm-result.ts';
import { ALONE_MS, ANSWER_MS, awaitMemory, reportLost } from './await-memory.ts';
import { ask, recordFailure } from './migration-record.ts';
import { handOver, sourceFailed } from './migration-status.ts';

export type TargetRecord = Extract<MigrationRecord, { role: 'target' }>;

const API_RETRY_MS = 250;
/** The source lets go of shared disks a moment after it has sent everything. */
const CONT_TRIES_MS = 30_000;
const CONT_PAUSE_MS = 100;
const LOAD_POLL_MS = 10;

/** The result of a target that a guest did not come to. */
export const failure = (message: string): VmResult => ({
  phase: 'Failed',
  reason: 'MigrationFailed',
  message,
  exitCode: 1,
});

/** An agent that comes back while its guest is on its way here. */
export async function resumeReceiver(launcher: LauncherState, guest: Guest): Promise<VmResult | undefined> {
  const migration = launcher.record?.migration as TargetRecord;
  if (migration.phase !== 'receiving') return takeOver(launcher, guest);
  // The connections to the source are gone, and it was not notified that it may leave.
  await launcher.untilDone('guest not ended', () =>
    endProcess(launcher.environment, launcher.record as VmRecord, guest),
  );
  const reason = 'the agent of the target node was restarted';
  await giveUp(launcher, migration.uid, reason);
  return failure(reason);
}

/** A source that has sent everything stands still until it is notified: not for longer than it must. */
async function giveUp(launcher: LauncherState, uid: string, reason: string): Promise<void> {
  const { clock, signal } = launcher.environment;
  for (;;) {
    const { decision, vmi } = await ask(launcher);
    if (decision !== undefined && decision !== 'open') return;
    if (vmi) await recordFailure(launcher, vmi, sourceFailed(vmi, uid, { reason, aborted: false, now: clock.now() }));
    await clock.sleep(API_RETRY_MS, signal);
  }
}

/** The same where QEMU has ended meanwhile. */
export async function resumeEnded(launcher: LauncherState): Promise<VmResult> {
  const { phase } = (launcher.record as VmRecord).migration as TargetRecord;
  if (phase === 'receiving') return failure('QEMU ended before the guest was taken over');
  for (;;) {
    const step = nextTargetStep({
      phase,
      decision: phase === 'handed-over' ? undefined : (await ask(launcher)).decision,
      qemu: false,
      sourceSent: true,
      sourcePresent: false,
      unwanted: false,
    });
    if (step === 'discard') return failure('QEMU ended before the guest was taken over');
    if (step === 'lost') {
      const { migration: _, ...rest } = launcher.record as VmRecord;
      launcher.record = rest;
      return { ...failure('QEMU ended after the guest was taken over'), reason: 'Crashed' };
    }
    await launcher.environment.clock.sleep(API_RETRY_MS, launcher.environment.signal);
  }
}

/** What a target knows of its source while the two are connected. */
interface SourceLine {
  /** When the source stopped, ms since the epoch, where both have one clock. */
  readonly stoppedAt: number | undefined;
  readonly isOpen: () => boolean;
  /** The guest is ours. */
  readonly onHandedOver: () => void;
}

/**
 * Takes over a guest that is all here, or in post-copy will be, or finds out that it may not. Undefined: it runs. Also
 * the way back in for an agent that was restarted in the middle.
 */
export async function takeOver(
  launcher: LauncherState,
  guest: Guest,
  source?: SourceLine,
): Promise<VmResult | undefined> {
  const { clock, signal } = launcher.environment;
  for (;;) {
    try {
      return await tryTakeOver(launcher, guest, source);
    } catch (error) {
      signal.throwIfAborted();
      const phase = launcher.record?.migration?.phase;
      if (phase === undefined || phase === 'receiving') throw error;
      // Once the write was tried no failure here undoes it: it is found out what the API says, and what is left of QEMU.
      launcher.log.warn('guest not taken over yet', { error: (error as Error).message });
      await clock.sleep(API_RETRY_MS, signal);
    }
  }
}

async function tryTakeOver(
  launcher: LauncherState,
  guest: Guest,
  source: SourceLine | undefined,
): Promise<VmResult | undefined> {
  const { environment } = launcher;
  const directory = join(environment.vmsDirectory, launcher.vmiUid);
  const migrationNow = (): TargetRecord => launcher.record?.migration as TargetRecord;
  const enter = async (migration: TargetRecord | undefined): Promise<void> => {
    launcher.record = withMigration(launcher.record as VmRecord, migration);
    await writeRecord(environment.vmsDirectory, launcher.record);
  };
  let connected = false;
  const connect = async (): Promise<void> => {
    if (connected || guest.state.exit !== undefined) return;
    connected = true;
    const record = launcher.record as VmRecord;
    const portProblems = await connectNetwork(guest, record).catch((error: Error) => [error.message]);
    launcher.record = { ...(launcher.record as VmRecord), portProblems };
  };
  const sourcePresent = migrationNow().phase === 'receiving' && launcher.guest === guest;
  for (;;) {
    environment.signal.throwIfAborted();
    const { phase, uid, peerNode } = migrationNow();
    const { decision, vmi } = phase === 'handed-over' ? {} : await ask(launcher);
    const step = nextTargetStep({
      phase,
      decision,
      qemu: guest.state.exit === undefined,
      sourceSent: sourcePresent || phase !== 'receiving',
      sourcePresent,
      // In post-copy a guest whose source is away would never be whole: it stays there.
      unwanted: launcher.isDeleting() || (migrationNow().postCopy === true && source?.isOpen() !== true),
    });
    switch (step) {
      case 'hand-over': {
        // On disk before it is tried for the first time: from then on only the API knows.
        if (phase === 'receiving') await Promise.all([enter({ ...migrationNow(), phase: 'handing-over' }), connect()]);
        if (vmi && (await writeHandOver(launcher, vmi))) {
          launcher.record = withMigration(launcher.record as VmRecord, { ...migrationNow(), phase: 'handed-over' });
          source?.onHandedOver();
        } else await environment.clock.sleep(API_RETRY_MS, environment.signal);
        break;
      }
      case 'run': {
        await connect();
        await keepTpmState(tpmStateOf(directory));
        const { wasRunning, postCopy } = migrationNow();
        const stoppedAt = source?.stoppedAt;
        // Also where the answer to the write was lost and the API showed it later.
        source?.onHandedOver();
        // Nothing hangs on this record but a faster start of the next agent: the guest does not wait for it.
        const recorded = enter({ ...migrationNow(), phase: 'handed-over' });
        const [stuck] = await Promise.all([wasRunning ? letGo(launcher, guest) : undefined, recorded]);
        if (stuck !== undefined && guest.state.exit === undefined) {
          launcher.log.error('guest taken over but not let run', { error: stuck });
          await endProcess(environment, launcher.record as VmRecord, guest);
        }
        if (guest.state.exit !== undefined) break;
        // In post-copy QEMU keeps the word until the guest has come, and lets it run then.
        if (postCopy && wasRunning) await untilRunning(launcher, guest, () => source?.isOpen() === true);
        const pauseMs = stoppedAt === undefined || !wasRunning ? undefined : environment.clock.now() - stoppedAt;
        if (postCopy) {
          launcher.log.info('guest taken over, its memory follows', { migration: uid, from: peerNode, pauseMs });
          const lost = await awaitMemory(launcher, guest, { uid, sourceOpen: () => source?.isOpen() === true });
          if (lost) {
            await enter(undefined);
            return lost;
          }
        }
        await enter(undefined);
        await guest.refresh().catch(() => {});
        launcher.event('Normal', 'Migrated', `The VirtualMachineInstance migrated to node ${environment.nodeName}.`);
        launcher.log.info('guest taken over', { migration: uid, from: peerNode, pauseMs });
        return undefined;
      }
      case 'lost':
        // Ours, and gone: reported as ours.
        if (migrationNow().postCopy) {
          const lost = await reportLost(launcher, guest, uid);
          await enter(undefined);
          return lost;
        }
        await enter(undefined);
        return { ...failure('QEMU ended before the guest that was taken over could run'), reason: 'Crashed' };
      case 'discard':
        await launcher.untilDone('guest not ended', () => endProcess(environment, launcher.record as VmRecord, guest));
        return failure('the migration has failed; the guest stays on its node');
      default:
        await environment.clock.sleep(API_RETRY_MS, environment.signal);
    }
  }
}

function withMigration(record: VmRecord, migration: TargetRecord | undefined): VmRecord {
  const { migration: _, ...rest } = record;
  return migration ? { ...rest, migration } : rest;
}

/** The compare-and-swap; false when it did not happen or nobody knows. */
async function writeHandOver(launcher: LauncherState, vmi: VirtualMachineInstance): Promise<boolean> {
  const { environment } = launcher;
  const { nodeName, clock } = environment;
  const { uid, peerNode, postCopy = false } = (launcher.record as VmRecord).migration as TargetRecord;
  const status = handOver(vmi, uid, { nodeName, sourceNode: peerNode, now: clock.now(), postCopy });
  if (Object.keys(status).length === 0) return false;
  try {
    const written = await patchStatus<VirtualMachineInstance>(environment, VIRTUAL_MACHINE_INSTANCES, vmi, { status });
    launcher.vmi = written;
    return written.status?.nodeName === nodeName;
  } catch (error) {
    environment.signal.throwIfAborted();
    launcher.log.debug('guest not taken over yet', { error: (error as Error).message });
    return false;
  }
}

/** Lets the guest run, unless it had ended before it came; the reason when that could not be done. */
async function letGo(launcher: LauncherState, guest: Guest): Promise<string | undefined> {
  const { clock, signal } = launcher.environment;
  const deadline = clock.monotonic() + CONT_TRIES_MS;
  for (;;) {
    try {
      await guest.qmp().execute('cont');
      return undefined;
    } catch (error) {
      signal.throwIfAborted();
      await guest.refresh().catch(() => {});
      if (hasEnded(guest.state.runState)) return undefined;
      if (guest.state.exit !== undefined || clock.monotonic() > deadline) return (error as Error).message;
    }
    await clock.sleep(CONT_PAUSE_MS, signal);
  }
}

/**
 * Waits until a guest that comes is loaded and runs; not for longer than it could take, nor long after its source is
 * away. One whose memory came to its end just before the switch comes as it was sent, paused: it is requested once more.
 */
async function untilRunning(launcher: LauncherState, guest: Guest, sourceOpen: () => boolean): Promise<void> {
  const { clock, signal } = launcher.environment;
  let deadline = clock.monotonic() + CONT_TRIES_MS;
  while (guest.state.exit === undefined && clock.monotonic() < deadline && !launcher.isDeleting()) {
    if (!sourceOpen()) deadline = Math.min(deadline, clock.monotonic() + ALONE_MS);
    const status = await statusOf(guest);
    if (status === 'paused') await letGo(launcher, guest);
    else if (status !== 'inmigrate') return;
    await clock.sleep(LOAD_POLL_MS, signal);
  }
}

/** A QEMU that does not answer may still come to it; one that has ended is seen by its exit. */
async function statusOf(guest: Guest): Promise<string> {
  try {
    return (await guest.qmp().execute('query-status', undefined, { timeoutMs: ANSWER_MS })).status;
  } catch {
    return 'inmigrate';
  }
}
