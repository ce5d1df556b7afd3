/** Small files that flags name, read whole within a bound: a device or a disk image is an error then, and no endless wait. */

import { closeSync, openSync, readSync } from 'node:fs';

const MAX_BYTES = 1024 * 1024;

/** The text of the file, at most 1 MiB. Throws what the system says, and an error for a larger one. */
export function readInputFile(path: string): string {
  const file = openSync(path, 'r');
  try {
    const bytes = Buffer.alloc(MAX_BYTES + 1);
    let length = 0;
    for (let read = -1; read !== 0 && length <= MAX_BYTES; length += read)
      read = readSync(file, bytes, length, bytes.length - length, null);
    if (length > MAX_BYTES) throw new Error('larger than 1 MiB');
    return bytes.toString('utf8', 0, length);
  } finally {
    closeSync(file);
  }
}
