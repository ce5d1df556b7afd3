/** Checksums as CDI writes them, `ALGORITHM:HEX`. */
import { createHash, type Hash } from 'node:crypto';
import { open } from 'node:fs/promises';
import { parseChecksum } from '@coracle/cluster-rules/storage/checksum';
import { FillError } from './fill-error.ts';

export interface Checksum {
  update(bytes: Uint8Array): void;
  /** Takes in the first `length` bytes of a file. */
  updateFrom(path: string, length: number, signal: AbortSignal): Promise<void>;
  /** Throws FillError when what was seen is something else. */
  verify(): void;
}

const READ_BYTES = 1024 * 1024;

/** Throws FillError for text that is no checksum. */
export function createChecksum(text: string): Checksum {
  const wanted = parseChecksum(text);
  if (!wanted) throw new FillError('Source', `checksum ${text.slice(0, 100)} is not ALGORITHM:HEX`);
  const hash: Hash = createHash(wanted.algorithm);
  return {
    update: (bytes) => void hash.update(bytes),
    async updateFrom(path, length, signal) {
      if (length === 0) return;
      const file = await open(path, 'r');
      const stream = file.createReadStream({ highWaterMark: READ_BYTES, start: 0, end: length - 1, signal });
      for await (const chunk of stream) hash.update(chunk as Buffer);
    },
    verify() {
      const found = hash.digest('hex');
      if (found !== wanted.hex)
        throw new FillError(
          'Checksum',
          `the checksum does not match: expected ${wanted.algorithm}:${wanted.hex}, the source gave ${wanted.algorithm}:${found}`,
        );
    },
  };
}
