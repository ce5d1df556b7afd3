/** Logs that QEMU itself writes, kept short: what a guest can make it say must not fill the disk of the node. */
import { open, stat, writeFile } from 'node:fs/promises';
import type { Clock } from '@coracle/runtime/clock/clock';

/** A log is cut when it is this long; one older part of at most that size is kept beside it, as `FILE.1`. */
export const MAX_LOG_BYTES = 1024 * 1024;
const LOOK_MS = 1000;

/**
 * Cuts the log when it is too long; resolves to the bytes it has then. QEMU appends to the file that it opened once, so
 * that the end is copied away and the file emptied in place; what is written in between is lost. Without room for the
 * copy the log is emptied all the same.
 */
export async function cutLog(file: string, maxBytes = MAX_LOG_BYTES): Promise<number> {
  const { size } = await stat(file);
  if (size < maxBytes) return size;
  const handle = await open(file, 'r+');
  try {
    const kept = new Uint8Array(maxBytes);
    const { bytesRead } = await handle.read(kept, 0, maxBytes, size - maxBytes);
    await handle.truncate(0);
    // Nothing: another one cut it in between.
    if (bytesRead > 0) await writeFile(`${file}.1`, kept.subarray(0, bytesRead), { mode: 0o600 }).catch(() => {});
    return 0;
  } finally {
    await handle.close();
  }
}

/** Looks at the log each second until the signal fires. */
export function keepLogShort(file: string, { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal }) {
  void (async () => {
    while (!signal.aborted) {
      // No log yet, or none any more: it is looked for again.
      await cutLog(file).catch(() => {});
      await clock.sleep(LOOK_MS, signal).catch(() => {});
    }
  })();
}
