/** Which parts of a file hold data: a sparse disk of many GiB is not read where there is nothing. */
import { run } from '@coracle/runtime/process/run';

/** Bytes from `start` up to `end`. */
export interface Extent {
  readonly start: number;
  readonly end: number;
}

const TIMEOUT_MS = 60_000;
/** A file in more pieces than this tells is read as a whole. */
const MAX_OUTPUT = 8 * 1024 * 1024;
const BLOCK_BYTES = 512;

/**
 * The extents of a file in rising order, as `qemu-img map` tells them (of the file as raw bytes, whatever its format). All
 * of it where that is not known, or where there are no holes.
 */
export async function dataExtents(
  path: string,
  { bytes, blocks, signal }: { readonly bytes: number; readonly blocks: number; readonly signal: AbortSignal },
): Promise<readonly Extent[]> {
  const all = [{ start: 0, end: bytes }];
  if (bytes === 0 || blocks * BLOCK_BYTES >= bytes) return all;
  const argv = ['qemu-img', 'map', '-U', '--output=json', '-f', 'raw', path];
  const result = await run(argv, { signal, timeoutMs: TIMEOUT_MS, maxStdout: MAX_OUTPUT });
  signal.throwIfAborted();
  if (!result.ok) return all;
  try {
    const mapped = JSON.parse(new TextDecoder().decode(result.stdout)) as readonly {
      readonly start: number;
      readonly length: number;
      readonly data: boolean;
    }[];
    const known = mapped.reduce((end, { start, length }) => (start === end ? start + length : Number.NaN), 0);
    // QEMU counts in sectors: it may tell of a few bytes more than there are.
    if (!(known >= bytes)) return all;
    return mapped
      .filter(({ data, start }) => data && start < bytes)
      .map(({ start, length }) => ({ start, end: Math.min(start + length, bytes) }));
  } catch {
    return all;
  }
}
