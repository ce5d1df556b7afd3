/** Writes a stream to a file, leaving holes where it is zero, with a bound and a running digest. */
import { createHash } from 'node:crypto';
import { type FileHandle, open } from 'node:fs/promises';

export interface SparseResult {
  readonly digest: string;
  readonly size: number;
}

const BLOCK = 64 * 1024;

const isZero = (block: Uint8Array): boolean => {
  // A 32-bit view is many times faster than bytes; blocks from a stream may be unaligned.
  if (block.byteOffset % 4 === 0 && block.length % 4 === 0) {
    const words = new Uint32Array(block.buffer, block.byteOffset, block.length / 4);
    for (const word of words) if (word !== 0) return false;
    return true;
  }
  for (const byte of block) if (byte !== 0) return false;
  return true;
};

/** Creates `path` (must not exist) from `source`. Throws when it would be larger than `maxBytes`; the file is left for the caller to remove. */
export async function writeSparse(
  path: string,
  source: AsyncIterable<Uint8Array>,
  options: { readonly maxBytes: number; readonly signal: AbortSignal },
): Promise<SparseResult> {
  const hash = createHash('sha256');
  const file: FileHandle = await open(path, 'wx', 0o600);
  let size = 0;
  try {
    for await (const chunk of source) {
      options.signal.throwIfAborted();
      if (size + chunk.length > options.maxBytes)
        throw new Error(`a file of the image is larger than the limit of ${options.maxBytes} bytes`);
      hash.update(chunk);
      for (let from = 0; from < chunk.length; from += BLOCK) {
        const block = chunk.subarray(from, from + BLOCK);
        if (isZero(block)) continue;
        let done = 0;
        while (done < block.length)
          done += (await file.write(block, done, block.length - done, size + from + done)).bytesWritten;
      }
      size += chunk.length;
    }
    await file.truncate(size);
    await file.sync();
  } finally {
    await file.close();
  }
  return { digest: `sha256:${hash.digest('hex')}`, size };
}
