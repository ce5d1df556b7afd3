/** What `up` and `status` say of a disk that is nearly full: which directory lies on it, and what is missing. */
import { statfs } from 'node:fs/promises';
import { diskMarks } from '@coracle/apiserver/storage/disk-state';
import { type DiskSpace, diskFloor, hasDiskPressure } from '@coracle/kubevirt/rules/machine/disk-room';

/** The part of one line that follows `disk`; undefined while there is room. Pure. */
export function fullDiskText(directory: string, space: DiskSpace): string | undefined {
  if (!hasDiskPressure(space, false)) return undefined;
  const { pause, pressure } = diskFloor(space.total);
  const mib = (bytes: number): string => `${Math.ceil(bytes / 1024 ** 2)} MiB`;
  const effect =
    space.free < pause ? 'no guest is started, and guests that write are paused' : 'no guest is started on its nodes';
  return `${mib(space.free)} left in ${directory}: ${effect}; free ${mib(pressure * 1.25 - space.free)} there${space.free < diskMarks(space.total).readOnly ? '' : ' (deletes still work)'}`;
}

/** The same of the disk as it is now; undefined too where it cannot be asked. */
export async function fullDisk(directory: string): Promise<string | undefined> {
  try {
    const { bavail, bsize, blocks } = await statfs(directory);
    return fullDiskText(directory, { free: bavail * bsize, total: blocks * bsize });
  } catch {
    return undefined;
  }
}
