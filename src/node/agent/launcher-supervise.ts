/** The second stage of a launcher: QEMU lives, its state is reported, and it is ended when that is wanted. */
import { statfs } from 'node:fs/promises';
import { writeVmiStatus } from './api-writes.ts';
import type { Guest } from './guest.ts';
import { DEFAULT_GRACE_SECONDS, FIRST_RETRY_MS, type LauncherState, newer } from './launcher-state.ts';
import { askToShutDown, endProcess } from './stop-vm.ts';
import { resultOf, type VmResult } from './vm-result.ts';
import { isClaimed, runningStatus } from './vmi-status.ts';

/** How often room is looked for while a guest waits for disk space. */
const SPACE_POLL_MS = 5000;
const ENOUGH_SPACE = 64 * 1024 * 1024;

/** Lives as long as the guest; resolves to how it ended. */
export async function superviseGuest(launcher: LauncherState): Promise<VmResult> {
  const guest = launcher.guest;
  if (!guest) return resultOf({});
  let stopping: Promise<void> | undefined;
  let spacePoll: (() => void) | undefined;
  let retry: (() => void) | undefined;
  try {
    for (;;) {
      launcher.environment.signal.throwIfAborted();
      const change = launcher.nextChange();
      const result = await endingOf(launcher, guest);
      if (result) return result;
      if (launcher.isDeleting() && !stopping)
        stopping = stop(launcher, guest).catch((error: Error) => {
          if (!launcher.environment.signal.aborted) launcher.log.warn('guest not stopped', { error: error.message });
        });
      if (guest.state.runState === 'io-error' && guest.state.ioError === 'nospace') {
        spacePoll ??= launcher.environment.clock.schedule(SPACE_POLL_MS, () => {
          spacePoll = undefined;
          void continueIfRoom(launcher, guest);
        });
      }
      retry?.();
      retry = undefined;
      if (!(await reportRunning(launcher, guest)))
        retry = launcher.environment.clock.schedule(FIRST_RETRY_MS, () => launcher.changed());
      await Promise.race([change, launcher.untilAborted()]);
    }
  } finally {
    spacePoll?.();
    retry?.();
  }
}

/** How the guest ended, if it did. */
async function endingOf(launcher: LauncherState, guest: Guest): Promise<VmResult | undefined> {
  const { state } = guest;
  const forced = launcher.forced && { forced: launcher.forced };
  if (state.exit !== undefined)
    return resultOf({
      ...(state.exit !== 'gone' && { exit: state.exit }),
      ...(state.shutdownReason !== undefined && { shutdown: state.shutdownReason }),
      ...forced,
      output: await guest.output(),
    });
  if (state.runState === 'guest-panicked') return resultOf({ panicked: true });
  if (state.runState !== 'shutdown') return undefined;
  if (launcher.softRebootUntil > launcher.environment.clock.monotonic() && !launcher.isDeleting()) {
    launcher.softRebootUntil = 0;
    await guest.qmp().execute('system_reset');
    await guest.qmp().execute('cont');
    await guest.refresh();
    return undefined;
  }
  // QEMU stays in this state until we have seen it, also over a restart of ours.
  return resultOf({ shutdown: state.shutdownReason ?? 'guest-shutdown', ...forced });
}

/**
 * The guest's own grace period, or less where its Pod is deleted with less: as a kubelet would end it then. A machine
 * without ACPI has no power button: waiting for it would be in vain.
 */
function graceSeconds(launcher: LauncherState): number {
  if (launcher.record?.plan.machine.options['acpi'] === 'off') return 0;
  const own = launcher.vmi?.spec.terminationGracePeriodSeconds ?? DEFAULT_GRACE_SECONDS;
  return Math.min(own, launcher.pod?.metadata.deletionGracePeriodSeconds ?? own);
}

/** Ends the guest: gently within its grace period, then by force. */
async function stop(launcher: LauncherState, guest: Guest): Promise<void> {
  const { environment } = launcher;
  const seconds = graceSeconds(launcher);
  const ended = (): boolean => guest.state.exit !== undefined || guest.state.runState === 'shutdown';
  if (seconds > 0) {
    launcher.event('Normal', 'ShuttingDown', `Signaled graceful shutdown, waiting up to ${seconds} s`);
    const outcome = await askToShutDown(environment, {
      guest,
      graceMs: () => graceSeconds(launcher) * 1000,
      ended,
      changed: () => launcher.nextChange(),
    });
    if (outcome === 'ended') return;
    launcher.forced = 'grace';
  } else launcher.forced = 'immediate';
  if (launcher.record) await endProcess(environment, launcher.record, guest);
}

async function continueIfRoom(launcher: LauncherState, guest: Guest): Promise<void> {
  try {
    const { bavail, bsize } = await statfs(launcher.environment.vmsDirectory);
    if (bavail * bsize >= ENOUGH_SPACE && guest.state.runState === 'io-error') await guest.qmp().execute('cont');
    await guest.refresh();
  } catch (error) {
    launcher.log.debug('disk space not checked', { error: (error as Error).message });
  }
  launcher.changed();
}

/** Writes Pod and VMI status where they are behind; false when a write failed. */
async function reportRunning(launcher: LauncherState, guest: Guest): Promise<boolean> {
  const record = launcher.record;
  if (!record || launcher.podGone) return true;
  let ok = await launcher.report({
    state: 'running',
    startedAt: record.startedAt,
    address: record.address,
    imageIds: record.imageIds,
  });
  const vmi = launcher.vmi;
  if (!vmi || !isClaimed(vmi)) return ok;
  try {
    const view = {
      plan: record.plan,
      guest: guest.state,
      address: record.address,
      portProblems: record.portProblems,
    };
    let started = false;
    const written = await writeVmiStatus(launcher.environment, vmi, (newest) => {
      const change = runningStatus(newest, view, launcher.environment.clock.now());
      started = change.phase === 'Running';
      return change;
    });
    if (written) launcher.vmi = newer(launcher.vmi, written);
    if (started) launcher.event('Normal', 'Started', 'VirtualMachineInstance started.');
  } catch (error) {
    launcher.environment.signal.throwIfAborted();
    launcher.log.warn('vmi status not written', { error: (error as Error).message });
    ok = false;
  }
  return ok;
}
