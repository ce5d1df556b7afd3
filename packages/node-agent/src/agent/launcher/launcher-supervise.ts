/** The second stage of a launcher: QEMU lives, its state is reported, and it is ended when that is wanted. */
import { statfs } from 'node:fs/promises';
import { peerObstacle } from '../../network/peer.ts';
import { keepCredentials } from '../credentials/keep-credentials.ts';
import { watchDisk } from '../guest/disk-watch.ts';
import type { Guest } from '../guest/guest.ts';
import { keepPorts } from '../guest/keep-ports.ts';
import { updateGuest } from '../guest/live-update.ts';
import { updateCards } from '../guest/plug-cards.ts';
import { updateDisks } from '../guest/plug-disks.ts';
import { guestCondition, hasEnded } from '../guest/run-state.ts';
import { updateLinks } from '../guest/update-links.ts';
import { keepMemoryDump } from '../memory/dump-memory.ts';
import { outgoingMigration } from '../migration/migration-status.ts';
import { sendGuest } from '../migration/send-guest.ts';
import { movedAway, recoverSender, type SendOutcome } from '../migration/settle-sender.ts';
import { keepProbes } from '../probes/keep-probes.ts';
import { writeVmiStatus } from './api-writes.ts';
import { FIRST_RETRY_MS, type LauncherState, newer } from './launcher-state.ts';
import { askToShutDown, endProcess } from './stop-vm.ts';
import type { VmRecord } from './vm-record.ts';
import { resultOf, type VmResult } from './vm-result.ts';
import { isClaimed, type RunningView, runningStatus } from './vmi-status.ts';

/** How long QEMU may take for a reset: it does so at once. */
const RESET_POLL_MS = 20;
const RESET_TRIES = 50;
/** How often room is looked for while a guest waits for disk space. */
const SPACE_POLL_MS = 5000;
/** Until room for a larger guest is looked for again, or a device that was refused is tried again. */
const RESIZE_POLL_MS = 5000;
const BROKEN_MOVE_MS = 5000;
const ENOUGH_SPACE = 64 * 1024 * 1024;
const KEPT =
  'The Pod was marked for deletion while its node was silent. The guest runs on: it is moved where it can, else delete or restart the VirtualMachine, or delete the Pod with --grace-period=1, to end it';

/** Lives as long as the guest; resolves to how it ended. */
export async function superviseGuest(launcher: LauncherState): Promise<VmResult> {
  const guest = launcher.guest;
  if (!guest) return resultOf({});
  let stopping: Promise<void> | undefined;
  let spacePoll: (() => void) | undefined;
  let retry: (() => void) | undefined;
  let isKeptReported = false;
  let isDeathReported = false;
  const memoryDump = keepMemoryDump(launcher, guest);
  const ports = keepPorts(launcher, guest);
  const mover = followMigrations(launcher, guest);
  const disks = watchDisk(launcher, guest);
  const probes = keepProbes(launcher, guest);
  // A guest lets go of a disk some time after it was asked to.
  const unplugged = guest.onEvent(({ event }) => event === 'DEVICE_DELETED' && launcher.changed());
  const credentials = keepCredentials(launcher, guest);
  const report = (): Promise<boolean> =>
    reportRunning(launcher, guest, { isReady: probes.isReady, credentials: credentials.state });
  try {
    for (;;) {
      launcher.environment.signal.throwIfAborted();
      const change = launcher.nextChange();
      // While the guest moves nothing of its end is believed, and nothing else is done to it.
      const moved = mover.step();
      if (moved === 'left') return movedAway(launcher.record as VmRecord);
      if (moved === 'moving') {
        ports.forget();
        if (isOurs(launcher.record?.migration)) await report();
        await Promise.race([change, launcher.untilAborted()]);
        continue;
      }
      // Nor while it stands still for its memory to be saved.
      if (launcher.record?.saving && guest.state.exit === undefined) {
        await Promise.race([change, launcher.untilAborted()]);
        continue;
      }
      const ending = await lookForEnd(launcher, guest);
      if (ending === 'unclear') {
        retry ??= launcher.changedIn(FIRST_RETRY_MS);
        await Promise.race([change, launcher.untilAborted()]);
        retry?.();
        retry = undefined;
        continue;
      }
      if (ending) return ending;
      probes.look();
      credentials.look();
      const isEnding = launcher.isDeleting() || probes.isDead;
      if (isEnding && !stopping)
        stopping = stop(launcher, guest).catch((error: Error) => {
          if (!launcher.environment.signal.aborted) launcher.log.warn('guest not stopped', { error: error.message });
        });
      if (probes.isDead && !isDeathReported) {
        isDeathReported = true;
        launcher.podEvent('Normal', 'Killing', 'Container compute failed liveness probe');
      }
      if (!isKeptReported && launcher.vmi && launcher.keepsSilentGuest()) {
        isKeptReported = true;
        launcher.event('Warning', 'DeletionDeferred', KEPT);
      }
      if (guest.state.runState === 'io-error' && guest.state.ioError === 'nospace') {
        spacePoll ??= launcher.environment.clock.schedule(SPACE_POLL_MS, () => {
          spacePoll = undefined;
          void continueIfRoom(launcher, guest);
        });
      }
      memoryDump.look();
      ports.look();
      retry?.();
      retry = undefined;
      const isReported = await report();
      const isUpdated = await updateGuest(launcher, guest);
      const hasDisks = await updateDisks(launcher, guest);
      const hasCards = await updateCards(launcher, guest);
      const hasLinks = await updateLinks(launcher, guest);
      const isWaiting = !isUpdated || !hasDisks || !hasCards || !hasLinks || launcher.resizeWaits;
      if (!isReported) retry = launcher.changedIn(FIRST_RETRY_MS);
      else if (isWaiting) retry = launcher.changedIn(RESIZE_POLL_MS);
      await Promise.race([change, launcher.untilAborted()]);
    }
  } finally {
    spacePoll?.();
    retry?.();
    ports.stop();
    disks.stop();
    probes.stop();
    unplugged();
    credentials.stop();
  }
}

/** While it is sent the guest is still what it was. Before a switch to post-copy it stands still for a moment only. */
const isOurs = (migration: VmRecord['migration']): boolean =>
  migration === undefined || (migration.phase === 'sending' && !migration.postCopy);

/** Starts a migration when one is ready, one after the other, and takes up one that an earlier agent was in. */
function followMigrations(launcher: LauncherState, guest: Guest): { step(): 'still' | 'moving' | 'left' } {
  const { environment } = launcher;
  let state: 'still' | 'moving' | 'left' = 'still';
  /** The last one that was begun: a status that lags behind must not begin it again. */
  let last = '';
  const follow = (work: Promise<SendOutcome>): void => {
    state = 'moving';
    work.then(
      (outcome) => {
        state = outcome === 'left' ? 'left' : 'still';
        launcher.changed();
      },
      (error: Error) => {
        // Only the end of the agent gets here, or a mistake of ours: what the record says is taken up again, in a while.
        if (environment.signal.aborted) return;
        launcher.log.error('migration broke off', { error: error.stack });
        environment.clock.schedule(BROKEN_MOVE_MS, () => {
          state = 'still';
          launcher.changed();
        });
      },
    );
  };
  return {
    step() {
      if (state !== 'still') return state;
      const migration = launcher.record?.migration;
      if (migration) {
        last = migration.uid;
        follow(recoverSender(launcher, guest));
      } else if (!launcher.isDeleting() && guest.state.connected && !launcher.record?.saving) {
        const source = { nodeName: environment.nodeName, podName: launcher.pod?.metadata.name ?? '' };
        const outgoing = outgoingMigration(launcher.vmi, source);
        if (outgoing && outgoing.uid !== last) {
          last = outgoing.uid;
          follow(sendGuest(launcher, guest, outgoing));
        }
      }
      return state;
    },
  };
}

/** The same as `endingOf`; 'unclear' where QEMU did not carry out a command: it is looked at again, and never let go of. */
async function lookForEnd(launcher: LauncherState, guest: Guest): Promise<VmResult | 'unclear' | undefined> {
  try {
    return await endingOf(launcher, guest);
  } catch (error) {
    launcher.environment.signal.throwIfAborted();
    launcher.log.warn('guest looked at again', { state: guest.state.runState, error: (error as Error).message });
    await guest.refresh().catch(() => {});
    return 'unclear';
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
  switch (guestCondition(state.runState)) {
    case 'panicked':
      return resultOf({ shutdown: 'guest-panic' });
    case 'broken':
      return resultOf({ internalError: true, output: await guest.output() });
    case 'off':
      if (await bootAgain(launcher, guest)) return undefined;
      // QEMU stays in this state until we have seen it, also over a restart of ours.
      return resultOf({ shutdown: state.shutdownReason ?? 'guest-shutdown', ...forced });
    default:
      return undefined;
  }
}

/** The second half of a soft reboot, where this power-off is the first. False when the guest is to stay off. */
async function bootAgain(launcher: LauncherState, guest: Guest): Promise<boolean> {
  const { clock, signal } = launcher.environment;
  const terminates = launcher.record?.plan.rebootPolicy === 'terminate';
  if (terminates || launcher.softRebootUntil <= clock.monotonic() || launcher.isDeleting()) return false;
  await guest.qmp().execute('system_reset');
  // QEMU resets between two turns of its main loop, and does not let the guest run before.
  for (let tries = 0; tries < RESET_TRIES; tries++) {
    await guest.refresh();
    if (!hasEnded(guest.state.runState)) break;
    await clock.sleep(RESET_POLL_MS, signal);
  }
  await guest.qmp().execute('cont');
  launcher.softRebootUntil = 0;
  await guest.refresh();
  return true;
}

/**
 * The guest's own grace period, or less where its Pod is deleted with less: as a kubelet would end it then. A machine
 * without ACPI has no power button: waiting for it would be in vain.
 */
function graceSeconds(launcher: LauncherState): number {
  if (launcher.forceWanted) return 0;
  if (launcher.record?.plan.machine.options['acpi'] === 'off') return 0;
  const own = launcher.graceSeconds;
  return Math.min(own, launcher.pod?.metadata.deletionGracePeriodSeconds ?? own);
}

/** Ends the guest: gently within its grace period, then by force. */
async function stop(launcher: LauncherState, guest: Guest): Promise<void> {
  const { environment } = launcher;
  // Upstream's event of a guest that is stopped because its instance is being deleted.
  if (launcher.vmi?.metadata.deletionTimestamp !== undefined) launcher.event('Normal', 'Deleted', 'Signaled Deletion');
  const seconds = graceSeconds(launcher);
  const ended = (): boolean => guest.state.exit !== undefined || hasEnded(guest.state.runState);
  const { clock } = environment;
  const begun = clock.monotonic();
  launcher.graceLeftMs = () => Math.max(0, begun + graceSeconds(launcher) * 1000 - clock.monotonic());
  if (seconds > 0) {
    launcher.event('Normal', 'ShuttingDown', `Signaled graceful shutdown, waiting up to ${seconds} s`);
    const graceMs = (): number => graceSeconds(launcher) * 1000;
    const changed = (): Promise<void> => launcher.nextChange();
    if ((await askToShutDown(environment, { guest, graceMs, ended, changed })) === 'ended') return;
    launcher.forced = launcher.forceWanted ? 'immediate' : 'grace';
  } else launcher.forced = 'immediate';
  if (launcher.record) await endProcess(environment, launcher.record, guest);
}

async function continueIfRoom(launcher: LauncherState, guest: Guest): Promise<void> {
  try {
    const { bavail, bsize } = await statfs(launcher.environment.vmsDirectory);
    if (bavail * bsize >= ENOUGH_SPACE && !launcher.record?.migration && guest.state.runState === 'io-error')
      await guest.qmp().execute('cont');
    await guest.refresh();
  } catch (error) {
    launcher.log.debug('disk space not checked', { error: (error as Error).message });
  }
  launcher.changed();
}

/** Writes Pod and VMI status where they are behind; false when a write failed. */
async function reportRunning(
  launcher: LauncherState,
  guest: Guest,
  { isReady, credentials }: { readonly isReady: boolean | undefined } & Pick<RunningView, 'credentials'>,
): Promise<boolean> {
  const record = launcher.record;
  if (!record || launcher.podGone) return true;
  const resize = await launcher.decideResize();
  let ok = await launcher.report({
    ...(resize && { resize }),
    state: 'running',
    ...(isReady !== undefined && { isReady }),
    startedAt: record.startedAt,
    address: record.address,
    ports: guest.forwarder?.published() ?? [],
    cards: record.plan.interfaces,
    imageIds: record.imageIds,
  });
  const vmi = launcher.vmi;
  if (!vmi || !isClaimed(vmi)) return ok;
  try {
    const view = {
      node: launcher.environment.nodeName,
      peerObstacle: peerObstacle(launcher.environment.peer),
      plan: record.plan,
      guest: guest.state,
      address: record.address,
      portProblems: record.portProblems,
      diskPause: record.diskPause,
      memoryPlugFailed: launcher.memoryPlugFailed,
      plugging: launcher.plugging,
      credentials,
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
