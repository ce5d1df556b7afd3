/** Writes bytes to a file one after the other, large pieces at a time, and leaves holes where they are zero. */
import type { FileHandle } from 'node:fs/promises';

export interface HoleWriter {
  /** Bytes taken so far, from the start of the file. */
  readonly position: number;
  /** The bytes must not change afterwards. Rejects with the failure of an earlier write, too. */
  write(bytes: Uint8Array): Promise<void>;
  /** Resolves when everything taken so far is with the system; `synced` when it is on the disk for certain. */
  startSync(): Promise<{ readonly synced: Promise<void> }>;
  /** Writes what is left; the file is as long as what it took. */
  end(): Promise<void>;
}

/** One write at a time is on its way, and as much again is held: two of these at most. */
const BATCH_BYTES = 1024 * 1024;
const BLOCK = 64 * 1024;
const ZEROS = new Uint8Array(BLOCK);

/** True for a piece of zeros. */
export function isZero(bytes: Uint8Array): boolean {
  for (let at = 0; at < bytes.length; at += BLOCK) {
    const part = bytes.subarray(at, at + BLOCK);
    if (part[0] !== 0 || Buffer.compare(part, part.length === BLOCK ? ZEROS : ZEROS.subarray(0, part.length)) !== 0)
      return false;
  }
  return true;
}

/** Writes to `file` from `from` on. */
export function createHoleWriter(file: FileHandle, from = 0): HoleWriter {
  let position = from;
  let batch: Uint8Array[] = [];
  let batchAt = from;
  let batchBytes = 0;
  let pending: Promise<void> = Promise.resolve();

  const writeAll = async (parts: readonly Uint8Array[], at: number, bytes: number): Promise<void> => {
    const { bytesWritten } = await file.writev(parts, at);
    if (bytesWritten === bytes) return;
    // A disk that is nearly full takes a part; the write of the rest says why.
    const rest = Buffer.concat(parts).subarray(bytesWritten);
    for (let done = 0; done < rest.length; )
      done += (await file.write(rest, done, rest.length - done, at + bytesWritten + done)).bytesWritten;
  };
  const flush = async (): Promise<void> => {
    await pending;
    if (batchBytes === 0) return;
    pending = writeAll(batch, batchAt, batchBytes);
    // The next call hears of it.
    pending.catch(() => {});
    batch = [];
    batchBytes = 0;
  };
  return {
    get position() {
      return position;
    },
    async write(bytes) {
      if (isZero(bytes)) await flush();
      else {
        if (batchBytes === 0) batchAt = position;
        batch.push(bytes);
        batchBytes += bytes.length;
        if (batchBytes >= BATCH_BYTES) {
          position += bytes.length;
          return flush();
        }
      }
      position += bytes.length;
    },
    async startSync() {
      await flush();
      await pending;
      await file.truncate(position);
      return { synced: file.datasync() };
    },
    async end() {
      await flush();
      await pending;
      await file.truncate(position);
    },
  };
}
