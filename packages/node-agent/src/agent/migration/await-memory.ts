/** The last act of a target in post-copy: the guest runs, and what is left of its memory comes. */
import type { Guest } from '../guest/guest.ts';
import type { LauncherState } from '../launcher/launcher-state.ts';
import { endProcess } from '../launcher/stop-vm.ts';
import type { VmRecord } from '../launcher/vm-record.ts';
import type { VmResult } from '../launcher/vm-result.ts';
import { report } from './migration-record.ts';
import { POST_COPY_LOST, postCopyDone, sourceFailed } from './migration-status.ts';

const POLL_MS = 50;
/** QEMU hears of the last page before its source closes the line; without a source nothing comes any more. */
export const ALONE_MS = 5000;
/** A QEMU that waits for a page may answer nothing until it comes: ms that an answer is waited for. */
export const ANSWER_MS = 1000;
/** QEMU's words for a stream that broke off. It could be taken up again by a source that still has the rest. */
const BROKEN = new Set(['postcopy-paused', 'postcopy-recover', 'failed', 'cancelled']);

/**
 * Resolves with undefined when all has come and the API knows, or the guest is to be deleted meanwhile; with the end of
 * the guest when its memory will never be whole. It never goes back to the source. Rejects only with the end of the agent.
 */
export async function awaitMemory(
  launcher: LauncherState,
  guest: Guest,
  migration: { readonly uid: string; readonly sourceOpen: () => boolean },
): Promise<VmResult | undefined> {
  const { environment } = launcher;
  const { clock, signal } = environment;
  let aloneSince: number | undefined;
  for (;;) {
    signal.throwIfAborted();
    if (launcher.isDeleting()) return undefined;
    const status = await statusOf(guest);
    if (status === 'completed') {
      const now = clock.now();
      await launcher.untilDone('end of the migration not reported', () =>
        report(launcher, (vmi) => postCopyDone(vmi, migration.uid, now)),
      );
      return undefined;
    }
    aloneSince = migration.sourceOpen() ? undefined : (aloneSince ?? clock.monotonic());
    const alone = aloneSince !== undefined && clock.monotonic() - aloneSince > ALONE_MS;
    if (guest.state.exit !== undefined || alone || (status !== undefined && BROKEN.has(status)))
      return reportLost(launcher, guest, migration.uid);
    await clock.sleep(POLL_MS, signal);
  }
}

/** Ends what is left of a guest that is ours and not whole, and tells why. */
export async function reportLost(launcher: LauncherState, guest: Guest, uid: string): Promise<VmResult> {
  const { environment } = launcher;
  launcher.log.error('memory of a guest that was taken over did not come', { migration: uid });
  // Before anybody is notified: a part of a guest must not go on.
  await launcher.untilDone('guest not ended', () => endProcess(environment, launcher.record as VmRecord, guest));
  const now = environment.clock.now();
  const failure = { reason: POST_COPY_LOST, aborted: false, now };
  await launcher.untilDone('failure of the migration not reported', () =>
    report(launcher, (vmi) => sourceFailed(vmi, uid, failure)),
  );
  launcher.event('Warning', 'Migrated', `VirtualMachineInstance migration uid ${uid} failed. reason:${POST_COPY_LOST}`);
  return { phase: 'Failed', reason: 'PostCopyFailed', message: POST_COPY_LOST, exitCode: 1 };
}

/** What QEMU says of the migration; undefined when it does not answer. */
async function statusOf(guest: Guest): Promise<string | undefined> {
  try {
    return (await guest.qmp().execute('query-migrate', undefined, { timeoutMs: ANSWER_MS })).status;
  } catch {
    return undefined;
  }
}
