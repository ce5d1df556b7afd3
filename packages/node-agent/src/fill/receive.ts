/**
 * An image that somebody sends, into a file. Only one that is whole is kept, on the disk for certain and with a note that says
 * so: what the sender believes to be received outlives a restart of the node.
 */
import { open, readFile, rm, stat } from 'node:fs/promises';
import { writeFileAtomic } from '../image/atomic-file.ts';
import { tooLarge } from './download.ts';
import { FillError } from './fill-error.ts';
import { createHoleWriter } from './hole-writer.ts';
import { type StallOptions, watchStall } from './watch-stall.ts';

/** The bytes on their way, read as fast as they can be written. */
export interface IncomingImage {
  /** How many there will be. */
  readonly bytes: number;
  /** Ends after all of them; throws when the sender has gone. */
  chunks(signal: AbortSignal): AsyncIterable<Uint8Array>;
  /** They are here, and are an image that can be taken. */
  received(): void;
}

export interface ReceiveOptions extends StallOptions {
  readonly maxBytes: number;
  readonly onProgress: (done: number, total: number) => void;
  readonly onHead: (head: Uint8Array) => void;
}

const noteOf = (path: string): string => `${path}.json`;

/** True when an earlier upload left all of its bytes at `path`. What is there of any other is removed. */
export async function wasReceived(path: string): Promise<boolean> {
  try {
    const note = JSON.parse(await readFile(noteOf(path), 'utf8')) as { readonly isWhole?: unknown };
    if (note.isWhole === true && (await stat(path)).isFile()) return true;
  } catch {
    // No note, or half of one, or none of the bytes.
  }
  await rm(path, { force: true });
  return false;
}

/** Fills `path`. Throws FillError, or the signal's reason. */
export async function receive(image: IncomingImage, path: string, options: ReceiveOptions): Promise<void> {
  if (image.bytes > options.maxBytes) throw tooLarge(image.bytes, options.maxBytes);
  const watch = watchStall('the sender', options);
  const file = await open(path, 'w', 0o600);
  try {
    const writer = createHoleWriter(file);
    for await (const chunk of image.chunks(watch.signal)) {
      watch.alive();
      if (writer.position === 0) options.onHead(chunk);
      await writer.write(chunk);
      options.onProgress(writer.position, image.bytes);
    }
    await writer.end();
    await file.datasync();
    await writeFileAtomic(noteOf(path), JSON.stringify({ isWhole: true }));
  } catch (error) {
    options.signal.throwIfAborted();
    if (watch.signal.aborted) throw new FillError('Source', (watch.signal.reason as Error).message);
    throw error;
  } finally {
    watch.stop();
    await file.close();
  }
}
