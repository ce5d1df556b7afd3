/** Empty qcow2 files of a VM, written as bytes: a process for each of them would be a part of every start. */
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import type { BackingFile } from '../qemu/argv.ts';
import { emptyQcow2 } from '../storage/empty-qcow2.ts';

/** A disk is a whole number of these. */
const SECTOR_BYTES = 512;

/**
 * Makes the empty qcow2 file `name` of `size` bytes in the directory of a VM, in the place of one that is there. The name
 * of the layer below it is as it stands in the header, relative to the file; nothing is opened.
 */
export async function createQcow2(
  { directory, signal }: { readonly directory: string; readonly signal: AbortSignal },
  name: string,
  { size, backing }: { readonly size: number; readonly backing?: Pick<BackingFile, 'file' | 'format'> },
): Promise<void> {
  signal.throwIfAborted();
  const image = emptyQcow2({
    bytes: Math.ceil(size / SECTOR_BYTES) * SECTOR_BYTES,
    ...(backing && { backing: { name: backing.file, format: backing.format } }),
  });
  const file = await open(join(directory, name), 'w', 0o600);
  try {
    await file.truncate(image.length);
    for (const { at, bytes: part } of image.parts) await file.write(part, 0, part.length, at);
  } finally {
    await file.close();
  }
}
