/** Empty qcow2 files of a VM, written as bytes: a process for each of them would be a part of every start. */
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { emptyQcow2 } from '../storage/empty-qcow2.ts';

/** A disk is a whole number of these. */
const SECTOR_BYTES = 512;

/**
 * Makes the qcow2 file `name` over `backing` with `size` bytes, in the place of one that is there. The name of the layer
 * below is as it stands in the header, relative to the file; nothing is opened.
 */
export const createOverlay = (
  name: string,
  options: {
    readonly directory: string;
    readonly backing: string;
    readonly backingFormat: 'raw' | 'qcow2';
    readonly size: number;
    readonly signal: AbortSignal;
  },
): Promise<void> => create(name, { ...options, backing: { name: options.backing, format: options.backingFormat } });

/** Makes an empty qcow2 file of `size` bytes, in the place of one that is there. */
export const createEmpty = (
  name: string,
  options: { readonly directory: string; readonly size: number; readonly signal: AbortSignal },
): Promise<void> => create(name, options);

async function create(
  name: string,
  {
    directory,
    size,
    signal,
    backing,
  }: {
    readonly directory: string;
    readonly size: number;
    readonly signal: AbortSignal;
    readonly backing?: { readonly name: string; readonly format: 'raw' | 'qcow2' };
  },
): Promise<void> {
  signal.throwIfAborted();
  const bytes = Math.ceil(size / SECTOR_BYTES) * SECTOR_BYTES;
  const image = emptyQcow2({ bytes, ...(backing && { backing }) });
  const file = await open(join(directory, name), 'w', 0o600);
  try {
    await file.truncate(image.length);
    for (const { at, bytes: part } of image.parts) await file.write(part, 0, part.length, at);
  } finally {
    await file.close();
  }
}
