/**
 * A QEMU whose record cannot be read: it is neither killed nor started a second time. It lives until it ends by itself or
 * somebody deletes the Pod.
 */
import { isRunning } from '@coracle/runtime/process/identity';
import { terminate } from '@coracle/runtime/process/terminate';
import { isUid } from '../../disk/vm-directory.ts';
import { findQemu } from './adopt.ts';
import type { LauncherState } from './launcher-state.ts';
import { ended, type Orphan, type StageOutcomes } from './launcher-step.ts';
import { startFailed } from './start-failure.ts';
import { readRecord } from './vm-record.ts';

const ORPHAN_POLL_MS = 5000;

/** What is there of a VMI without a record that can be read; undefined where nothing is, or the record is good. */
export async function findOrphan({ environment }: LauncherState, uid: string): Promise<Orphan | undefined> {
  if (!isUid(uid)) return undefined;
  const record = await readRecord(environment.vmsDirectory, uid);
  if (typeof record !== 'string') return undefined;
  const found = await findQemu(environment.vmsDirectory, uid);
  return record === 'missing' && !found ? undefined : { process: found };
}

/** Resolves once the process has ended; the guest is not started again. */
export async function awaitOrphan(
  launcher: LauncherState,
  { process: orphan }: Orphan,
): Promise<StageOutcomes['orphan']> {
  const { environment } = launcher;
  if (orphan)
    launcher.event(
      'Warning',
      'OrphanedGuest',
      `a guest of this UID runs on the node (pid ${orphan.pid}) but its record is damaged or missing; it is left running until the pod is deleted`,
    );
  while (orphan && (await isRunning(orphan))) {
    if (launcher.isDeleting()) {
      const graceMs = launcher.graceSeconds * 1000;
      await terminate(orphan, { clock: environment.clock, signal: environment.signal, graceMs });
    } else await launcher.pause(ORPHAN_POLL_MS);
  }
  return ended(
    startFailed(launcher, 'DamagedRecord', 'the record of this guest on the node is damaged; it is not started again'),
  );
}
