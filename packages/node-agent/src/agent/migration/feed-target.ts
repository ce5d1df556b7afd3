/** The last act of a source in post-copy: its QEMU gives what is left of the memory to a guest that runs elsewhere. */
import type { Guest } from '../guest/guest.ts';
import type { LauncherState } from '../launcher/launcher-state.ts';

const POLL_MS = 50;
/** Without an agent on the other side nobody takes anything; QEMU does not always notice. */
const ALONE_MS = 5000;
/** QEMU has something to give, or will once the line is free. */
const GIVING = new Set(['pre-switchover', 'device', 'active', 'postcopy-active', 'postcopy-recover']);

/**
 * Lets QEMU go on from where it stands before the switch, and waits until it has nothing to give any more: all was sent,
 * or the stream broke, or the target is gone. Also for an agent that was restarted. Rejects only with the end of the
 * agent.
 */
export async function feedTarget(launcher: LauncherState, guest: Guest, targetOpen: () => boolean): Promise<void> {
  const { clock, signal } = launcher.environment;
  let heardAt = clock.monotonic();
  for (;;) {
    signal.throwIfAborted();
    if (guest.state.exit !== undefined) return;
    const now = clock.monotonic();
    if (targetOpen()) heardAt = now;
    else if (now - heardAt > ALONE_MS) {
      launcher.log.warn('memory not sent whole after the hand-over', { status: 'the target is gone' });
      return;
    }
    try {
      const { status } = await guest.qmp().execute('query-migrate');
      if (status === undefined || !GIVING.has(status)) {
        if (status !== 'completed') launcher.log.warn('memory not sent whole after the hand-over', { status });
        return;
      }
      if (status === 'pre-switchover') await guest.qmp().execute('migrate-continue', { state: 'pre-switchover' });
    } catch (error) {
      signal.throwIfAborted();
      launcher.log.debug('asked again whether all memory was sent', { error: (error as Error).message });
    }
    await clock.sleep(POLL_MS, signal);
  }
}
