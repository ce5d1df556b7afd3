/** Maps of chunked files: one line `INDEX DIGEST` for each chunk that is not a hole, in rising order. */
import { createHash } from 'node:crypto';
import { BackupError } from './backup-error.ts';
import { openInside } from './backup-layout.ts';
import { CHUNK_BYTES } from './manifest.ts';

/** A map that cannot be believed. */
export class DamagedMapError extends BackupError {}

/** One chunk of a file. */
export interface MappedChunk {
  readonly index: number;
  readonly digest: string;
  /** Bytes of the chunk. */
  readonly bytes: number;
}

const LINE = /^(\d{1,8}) ([0-9a-f]{64})$/;
/** Longest line of a map. */
const MAX_LINE = 80;

/** Bytes of the chunk `index` of a file of `bytes`. */
export const chunkBytes = (index: number, bytes: number): number => Math.min(CHUNK_BYTES, bytes - index * CHUNK_BYTES);

/**
 * Walks a map, a line at a time. Throws BackupError on one that is damaged, at the latest at its end, where the digest of
 * the whole is known.
 */
export async function* readMap(
  root: string,
  path: string,
  { bytes, sha256, what }: { readonly bytes: number; readonly sha256: string; readonly what: string },
): AsyncGenerator<MappedChunk> {
  const file = await openInside(root, path);
  const damaged = new DamagedMapError(`${path}, the map of ${what}, is damaged`);
  try {
    const hash = createHash('sha256');
    let rest = '';
    let last = -1;
    for await (const part of file.createReadStream({ autoClose: false, highWaterMark: 64 * 1024 })) {
      hash.update(part as Buffer);
      const lines = (rest + (part as Buffer).toString('latin1')).split('\n');
      rest = lines.pop() ?? '';
      if (rest.length > MAX_LINE) throw damaged;
      for (const line of lines) {
        const [, index, digest] = LINE.exec(line) ?? [];
        if (index === undefined || Number(index) <= last || chunkBytes(Number(index), bytes) <= 0) throw damaged;
        last = Number(index);
        yield { index: last, digest: digest!, bytes: chunkBytes(last, bytes) };
      }
    }
    if (rest !== '' || hash.digest('hex') !== sha256) throw damaged;
  } finally {
    await file.close();
  }
}
