/** Ends a guest: by ACPI and patience, then by force. */
import { terminate, waitGone } from '@coracle/runtime/process/terminate';
import { vmDirectoryOf } from '../../disk/vm-directory.ts';
import { endTpm } from '../../tpm/swtpm.ts';
import type { AgentEnvironment } from '../environment.ts';
import type { Guest } from '../guest/guest.ts';
import type { VmRecord } from './vm-record.ts';

const QUIT_MS = 3000;
/** The guest may miss the button while it boots; it is pressed again. */
const PRESS_AGAIN_MS = 2000;

/**
 * Asks the guest to shut down and waits until its grace period is over. Resolves 'ended' when it did (or its process is
 * gone), 'late' when it did not. A paused guest is let run: it cannot hear otherwise.
 */
export async function askToShutDown(
  environment: AgentEnvironment,
  options: {
    readonly guest: Guest;
    /** The grace period, asked again at each change: somebody may have lost patience. */
    readonly graceMs: () => number;
    /** True once nothing more is to be waited for. */
    readonly ended: () => boolean;
    /** Resolves at the next change. */
    readonly changed: () => Promise<void>;
  },
): Promise<'ended' | 'late'> {
  const { clock, signal } = environment;
  const { guest } = options;
  const begun = clock.monotonic();
  let pressed = Number.NEGATIVE_INFINITY;
  for (;;) {
    // Taken first: a change while a command is under way must not be missed.
    const change = options.changed();
    if (options.ended()) return 'ended';
    const now = clock.monotonic();
    const deadline = begun + options.graceMs();
    if (now >= deadline) return 'late';
    if (now - pressed >= PRESS_AGAIN_MS) {
      pressed = now;
      try {
        if (guest.state.runState === 'paused' || guest.state.runState === 'prelaunch')
          await guest.qmp().execute('cont');
        await guest.qmp().execute('system_powerdown');
      } catch (error) {
        environment.log.warn('shutdown request failed', { error: (error as Error).message });
      }
    }
    const pause = Math.max(0, Math.min(begun + options.graceMs() - clock.monotonic(), PRESS_AGAIN_MS));
    await Promise.race([change, clock.sleep(pause, signal)]);
  }
}

/** Makes sure the guest's processes are gone: QEMU by quit over QMP, then SIGKILL; then its TPM. Only ever called for a guest that has to end. */
export async function endProcess(
  environment: AgentEnvironment,
  record: VmRecord,
  guest: Guest | undefined,
): Promise<void> {
  await endQemu(environment, record, guest);
  await endTpm(vmDirectoryOf(environment.vmsDirectory, record.vmiUid), environment);
}

async function endQemu(environment: AgentEnvironment, record: VmRecord, guest: Guest | undefined): Promise<void> {
  const { process: identity } = record;
  if (!identity) return;
  const { clock, signal } = environment;
  if (guest?.state.connected) {
    await guest
      .qmp()
      .execute('quit', undefined, { timeoutMs: 1000 })
      .catch(() => {});
    if (await waitGone(identity, QUIT_MS, { clock, signal })) return;
  }
  await terminate(identity, { clock, signal, graceMs: 0 });
}
