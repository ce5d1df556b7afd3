/** What is said when the disk of a backup, or of a restored directory, is full. */
import { statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { BackupError } from './backup-error.ts';

/** Free bytes of the file system of a directory; asked of the directory above where it is missing. */
export type FreeBytes = (directory: string) => Promise<number>;

export const freeBytes: FreeBytes = async (directory) => {
  for (let at = directory; ; at = dirname(at)) {
    try {
      const { bavail, bsize } = await statfs(at);
      return bavail * bsize;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || at === dirname(at)) throw error;
    }
  }
};

const MIB = 1024 * 1024;
/** Left over for directories and maps. */
const MARGIN = 8 * MIB;

export const isDiskFull = (error: unknown): boolean => {
  const { code, kind } = error as { code?: string; kind?: string };
  return code === 'ENOSPC' || code === 'EDQUOT' || kind === 'no-space';
};

/** The line for a disk that lacks `needed - free` bytes. */
export const diskFull = (directory: string, { needed, free }: { readonly needed: number; readonly free: number }) =>
  new BackupError(
    `the disk of ${directory} has no room: ${Math.ceil(needed / MIB)} MiB are needed, ${Math.floor(free / MIB)} MiB are free; free ${Math.max(1, Math.ceil((needed - free) / MIB))} MiB there (nothing was left behind)`,
  );

/** Throws BackupError when `needed` bytes have no room in `directory`. */
export async function checkRoom(directory: string, needed: number, free: FreeBytes): Promise<void> {
  const found = await free(directory);
  if (found < needed + MARGIN) throw diskFull(directory, { needed: needed + MARGIN, free: found });
}
