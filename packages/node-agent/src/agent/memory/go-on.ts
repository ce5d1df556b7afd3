/** What an agent does that finds a guest whose memory was being saved or loaded when an earlier agent ended. */
import type { Guest } from '../guest/guest.ts';
import type { LauncherState } from '../launcher/launcher-state.ts';
import { endProcess } from '../launcher/stop-vm.ts';
import { removeRecord, type VmRecord, writeRecord } from '../launcher/vm-record.ts';
import { letGuestGoOn } from './resume-memory.ts';
import { letGoOn } from './save-memory.ts';
import { userOf } from './state-files.ts';

/** A guest whose state came to nothing runs on; one that had all of its memory goes on from there. */
export async function goOn(launcher: LauncherState, guest: Guest): Promise<void> {
  const { environment } = launcher;
  const { saving, resuming, ...record } = launcher.record as VmRecord;
  if (saving) await letGoOn(guest, environment.clock);
  if (resuming) await letGuestGoOn(environment, guest, { ...record, resuming });
  launcher.record = record;
  await writeRecord(environment.vmsDirectory, record);
}

/** A QEMU that had not got all of its guest when the agent ended goes: the guest is resumed anew. */
export async function dropHalfResumed(launcher: LauncherState): Promise<void> {
  const { environment, record } = launcher;
  const { resuming } = record ?? {};
  if (!record || !resuming || record.result || record.bootId !== environment.bootId) return;
  if ((await userOf(environment.memoryDirectory, resuming.state, resuming.ticket)) === record.vmiUid) return;
  await launcher.untilDone('guest not ended', () => endProcess(environment, record, undefined));
  await removeRecord(environment.vmsDirectory, record.vmiUid);
  launcher.record = undefined;
  // The Pod says what is to be started, and the API has not shown it yet.
  while (!launcher.pod && !launcher.podGone) {
    environment.signal.throwIfAborted();
    await Promise.race([launcher.nextChange(), launcher.untilAborted()]);
  }
}
