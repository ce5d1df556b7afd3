/**
 * What a guest writes, looked at each second: it is paused at the limit of its Pod, or when it would take the last room of
 * the node, and goes on when there is room again (`domain/machine/disk-room`). That it was paused here stands in its
 * record: a guest that its user paused is never started by this.
 */
import { readdir, stat, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import {
  type DiskPause,
  diskPauseOf,
  ephemeralLimit,
  ephemeralRequest,
} from '@coracle/kubevirt/rules/machine/disk-room';
import type { LauncherState } from '../launcher/launcher-state.ts';
import { writeRecord } from '../launcher/vm-record.ts';
import type { Guest } from './guest.ts';

const LOOK_MS = 1000;
const BLOCK_BYTES = 512;
/** Links to what lies in the image store: nobody writes there, and it is not the guest's. */
const NOT_ITS_OWN = /^(disk-\d+\.(base|saved-\d+)|kernel|initrd)$/;

/** Bytes on the disk of a VM's own files: overlays, empty disks, media, logs. */
export async function directoryBytes(directory: string): Promise<number> {
  let bytes = 0;
  for (const entry of await readdir(directory, { withFileTypes: true }))
    if (entry.isFile() && !NOT_ITS_OWN.test(entry.name)) bytes += await fileBytes(join(directory, entry.name));
  return bytes;
}

const fileBytes = (path: string): Promise<number> =>
  stat(path).then(
    ({ blocks }) => blocks * BLOCK_BYTES,
    () => 0,
  );

/** Looks until it is stopped. */
export function watchDisk(launcher: LauncherState, guest: Guest): { stop(): void } {
  const { environment } = launcher;
  let cancel = (): void => {};
  let isStopped = false;
  /** Of all that the guest writes to; undefined before the first look. */
  let written: number | undefined;

  const look = async (): Promise<void> => {
    const { record, pod } = launcher;
    if (!record || !pod || record.migration || record.saving || !guest.state.connected || launcher.isDeleting()) {
      written = undefined;
      return;
    }
    const directory = join(environment.vmsDirectory, record.vmiUid);
    const used = await directoryBytes(directory);
    const elsewhere = await Promise.all((record.files ?? []).map(fileBytes));
    const total = elsewhere.reduce((sum, bytes) => sum + bytes, used);
    const grown = Math.max(0, total - (written ?? total));
    written = total;
    const { bavail, bsize, blocks } = await statfs(directory);
    const space = { free: bavail * bsize, total: blocks * bsize };
    const before = record.diskPause;
    const share = { limit: ephemeralLimit(pod), requested: ephemeralRequest(pod) };
    const after = diskPauseOf({ used, grown, ...share, space }, before);
    const { runState } = guest.state;
    if (after !== undefined && runState === 'running') await pause(after);
    else if (before !== undefined && after === undefined) await resume();
    else if (before !== undefined && after !== undefined && before !== after) await note(after);
  };
  const note = async (diskPause: DiskPause | undefined): Promise<void> => {
    const { record } = launcher;
    if (!record) return;
    const { diskPause: _, ...rest } = record;
    launcher.record = diskPause === undefined ? rest : { ...rest, diskPause };
    // A disk without room keeps the note in memory: an agent that comes next finds the guest as its user's.
    await writeRecord(environment.vmsDirectory, launcher.record).catch((error: Error) =>
      launcher.log.warn('record not written', { error: error.message }),
    );
    launcher.changed();
  };
  const pause = async (why: DiskPause): Promise<void> => {
    // Stopped first: the report may take a moment, and a disk is quickly full.
    await guest.qmp().execute('stop');
    await note(why);
    await guest.refresh();
    launcher.event(
      'Warning',
      'IOerror',
      why === 'limit'
        ? `VM paused: its disks and logs have reached the Pod's limit of ephemeral-storage; restart it with a higher limit, or free space within it`
        : `VM paused: no space left in ${environment.vmsDirectory} on node ${environment.nodeName}; it resumes when there is space again`,
    );
    launcher.log.warn('guest paused for its disks', { why });
  };
  const resume = async (): Promise<void> => {
    await note(undefined);
    // Not one that its user has paused or started meanwhile.
    if (guest.state.runState === 'paused') await guest.qmp().execute('cont');
    await guest.refresh();
    launcher.log.info('guest resumed: there is space for its disks');
  };
  const plan = (): void => {
    if (isStopped) return;
    cancel = environment.clock.schedule(LOOK_MS, () => {
      look()
        .catch((error: Error) => launcher.log.debug('disks not measured', { error: error.message }))
        .finally(plan);
    });
  };
  plan();
  return {
    stop() {
      isStopped = true;
      cancel();
    },
  };
}
