/** Ends guests that nobody serves: of an agent that was killed, or that left them running. */
import { dirname, join } from 'node:path';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { Logger } from '@coracle/runtime/log/log';
import { isRunning } from '@coracle/runtime/process/identity';
import { terminate, waitGone } from '@coracle/runtime/process/terminate';
import { createLinkedController } from '@coracle/runtime/signal/linked-controller';
import { VM_FILES } from '../../qemu/argv.ts';
import type { QmpConnection } from '../../qmp/qmp-connection.ts';
import { keepQmp } from '../../qmp/qmp-connection.ts';
import { takeAgentLock } from '../registration/agent-lock.ts';
import { type GuestOnDisk, nameOfGuest } from './guests-on-disk.ts';
import { writeRecord } from './vm-record.ts';
import { resultOf } from './vm-result.ts';

export interface StopGuestsOptions {
  /** Ends them at once, without their grace periods. */
  readonly force: boolean;
  readonly clock: Clock;
  readonly log: Logger;
  /** Ends the waiting: guests that have not ended by then run on. */
  readonly signal: AbortSignal;
}

/** A guest that has been asked to shut down, and what is left of its grace period. */
export interface AwaitedGuest {
  readonly name: string;
  readonly leftMs: number;
}

/** The work on several guests, all at once. */
export interface StoppingGuests {
  /** Those that still run. */
  waiting(): readonly AwaitedGuest[];
  /** Resolves when all have ended; rejects with the signal's reason, or with the agent that has come to serve them. */
  readonly done: Promise<void>;
}

/** Where no record tells. */
const DEFAULT_GRACE_SECONDS = 30;
const LOOK_MS = 250;
/** The guest may miss the button while it boots; it is pressed again. */
const PRESS_AGAIN_MS = 2000;
const QUIT_MS = 3000;

/**
 * Shuts guests down as their agent would: by ACPI, within the grace period, then by force. How each ended is written into its
 * record, for the next agent to report. No agent can start on their nodes meanwhile.
 */
export function stopGuestsOnDisk(guests: readonly GuestOnDisk[], options: StopGuestsOptions): StoppingGuests {
  const { clock } = options;
  const begun = clock.monotonic();
  const deadlineOf = (guest: GuestOnDisk): number => begun + (options.force ? 0 : graceSeconds(guest) * 1000);
  const running = new Set(guests);
  const stopNode = async (nodeDirectory: string): Promise<void> => {
    const unlock = await takeAgentLock(nodeDirectory);
    try {
      const ends = guests
        .filter((guest) => guest.nodeDirectory === nodeDirectory)
        .map(async (guest) => {
          await stopGuest(guest, deadlineOf(guest), options);
          running.delete(guest);
        });
      // Each guest gets its turn, whatever becomes of the others; the lock is held until the last one is through.
      const failed = (await Promise.allSettled(ends)).find((end) => end.status === 'rejected');
      if (failed) throw failed.reason;
    } finally {
      await unlock();
    }
  };
  const done = Promise.all([...new Set(guests.map(({ nodeDirectory }) => nodeDirectory))].map(stopNode));
  return {
    waiting: () =>
      [...running].map((guest) => ({
        name: nameOfGuest(guest),
        leftMs: Math.max(0, deadlineOf(guest) - clock.monotonic()),
      })),
    done: done.then(() => {}),
  };
}

/** A machine without a power button, or one that has yet to come from another node, is not waited for. */
function graceSeconds({ record }: GuestOnDisk): number {
  if (record?.plan.machine?.options?.['acpi'] === 'off' || record?.migration?.role === 'target') return 0;
  return record?.graceSeconds ?? DEFAULT_GRACE_SECONDS;
}

async function stopGuest(guest: GuestOnDisk, deadline: number, options: StopGuestsOptions): Promise<void> {
  const { clock, log, signal, force } = options;
  const waits = deadline > clock.monotonic();
  const linked = createLinkedController(signal);
  let qmp: QmpConnection | undefined;
  try {
    void keepQmp(join(guest.directory, VM_FILES.qmp), {
      clock,
      signal: linked.signal,
      onEvent: () => {},
      onConnected: (connection) => {
        qmp = connection;
      },
      onLost: () => {
        qmp = undefined;
      },
    });
    const shutDown = waits && (await shutsDown(guest, deadline, { clock, log, signal, qmp: () => qmp }));
    await qmp?.execute('quit', undefined, { timeoutMs: 1000 }).catch(() => {});
    if (!(qmp && (await waitGone(guest.process, QUIT_MS, { clock, signal }))))
      await terminate(guest.process, { clock, signal, graceMs: 0 });
    await recordEnd(guest, { shutDown, waited: waits && !force, now: clock.now() });
    log.info('guest ended that nobody served', { guest: nameOfGuest(guest), node: guest.node, shutDown });
  } finally {
    linked.abort(new DOMException('the guest has ended, or is left alone', 'AbortError'));
    linked.release();
  }
}

/** True when the guest shut down before the deadline, or its process is gone. */
async function shutsDown(
  guest: GuestOnDisk,
  deadline: number,
  at: Pick<StopGuestsOptions, 'clock' | 'log' | 'signal'> & { readonly qmp: () => QmpConnection | undefined },
): Promise<boolean> {
  const { clock, log, signal } = at;
  let pressed = Number.NEGATIVE_INFINITY;
  for (;;) {
    if (!(await isRunning(guest.process))) return true;
    try {
      const status = (await at.qmp()?.execute('query-status'))?.status;
      if (status === 'shutdown') return true;
      if (status !== undefined && clock.monotonic() - pressed >= PRESS_AGAIN_MS) {
        pressed = clock.monotonic();
        // One that stands still cannot hear.
        if (status === 'paused' || status === 'prelaunch') await at.qmp()?.execute('cont');
        await at.qmp()?.execute('system_powerdown');
      }
    } catch (error) {
      log.debug('shutdown request failed', { guest: nameOfGuest(guest), error: (error as Error).message });
    }
    const left = deadline - clock.monotonic();
    if (left <= 0) return false;
    await clock.sleep(Math.min(left, LOOK_MS), signal);
  }
}

/** What a moving guest's end means, the agents of both nodes decide from what they know. */
async function recordEnd(
  { record, process, directory }: GuestOnDisk,
  end: { readonly shutDown: boolean; readonly waited: boolean; readonly now: number },
): Promise<void> {
  if (!record || record.migration) return;
  const result = resultOf(
    end.shutDown ? { shutdown: 'guest-shutdown' } : { forced: end.waited ? 'grace' : 'immediate' },
  );
  await writeRecord(dirname(directory), { ...record, process, result, finishedAt: end.now });
}
