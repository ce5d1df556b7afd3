/**
 * Raw disk images that outlive a VM. What a guest may write to is never probed for a format: a guest could write the
 * header of another one, with other files' names in it.
 */
import { randomUUID } from 'node:crypto';
import { link, lstat, open, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';

const SECTOR = 512;

/**
 * Makes a sparse image of `size` bytes, mode 0600, whole or not at all. One that is there already, made by another VM
 * this moment, is left as it is.
 */
export async function createRawImage(path: string, size: number): Promise<void> {
  const made = join(dirname(path), `.coracle-${randomUUID()}`);
  const handle = await open(made, 'wx', 0o600);
  try {
    await handle.truncate(size).finally(() => handle.close());
    await link(made, path).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'EEXIST') return undefined;
      // A file system without hard links.
      if (error.code === 'EPERM' || error.code === 'ENOTSUP') return rename(made, path);
      throw error;
    });
  } finally {
    await rm(made, { force: true });
  }
}

/** Bytes a guest sees of the image; undefined when there is none. Throws when it is no regular file, or empty. */
export async function rawImageSize(path: string): Promise<number | undefined> {
  const found = await lstat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
  if (!found) return undefined;
  if (!found.isFile()) throw new Error('is not a regular file');
  if (found.size === 0) throw new Error('is empty');
  return Math.ceil(found.size / SECTOR) * SECTOR;
}
