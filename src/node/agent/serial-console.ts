/**
 * The serial console of one guest. QEMU serves one client on its socket: that is us, always reading, and any number of
 * readers share what we read. The tail is kept in memory and, by QEMU itself, in a log file that we keep short.
 */
import { copyFile, open, stat, truncate } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import type { Clock } from '../../base/clock/clock.ts';
import type { MessageSocket } from '../../base/http/seam.ts';
import { VM_FILES } from '../qemu/argv.ts';
import { connectUnix } from '../qmp/unix-socket.ts';

/** Replayed to a new reader. */
const TAIL_BYTES = 64 * 1024;
/** The log is cut when it is this long; one older part of that size is kept beside it. */
const MAX_LOG_BYTES = 1024 * 1024;
/** A reader that is this far behind is let go. */
const MAX_BEHIND = 1024 * 1024;
const MAX_READERS = 32;
const RETRY_MS = 500;
const TRY_AGAIN_LATER = 1013;

export interface SerialConsole {
  /** Replays the tail, then what comes; input of the reader goes to the guest. */
  attach(socket: MessageSocket): void;
  /** The last bytes, for status and tests. */
  tail(): Uint8Array;
}

/** Connects to the console of the VM in `directory` and stays connected until the signal fires. */
export function openSerialConsole(
  directory: string,
  options: { readonly clock: Clock; readonly signal: AbortSignal; readonly log: boolean },
): SerialConsole {
  const { clock, signal } = options;
  const readers = new Set<MessageSocket>();
  let tail: Uint8Array = new Uint8Array(0);
  let line: Socket | undefined;
  let sinceRotation = 0;
  let rotating = false;
  const logFile = join(directory, VM_FILES.serialLog);

  const remember = (chunk: Uint8Array): void => {
    const joined = Buffer.concat([tail, chunk]);
    tail = joined.length > TAIL_BYTES ? Buffer.from(joined.subarray(joined.length - TAIL_BYTES)) : joined;
  };

  /** QEMU appends to the file it opened once, so the file is copied away and cut in place. */
  const rotate = async (): Promise<void> => {
    if (rotating || !options.log) return;
    rotating = true;
    try {
      const { size } = await stat(logFile);
      sinceRotation = size;
      if (size < MAX_LOG_BYTES) return;
      await copyFile(logFile, `${logFile}.1`);
      await truncate(logFile, 0);
      sinceRotation = 0;
    } catch {
      // No room or no file: tried again with the next megabyte.
      sinceRotation = 0;
    } finally {
      rotating = false;
    }
  };

  const onData = (chunk: Buffer): void => {
    remember(chunk);
    for (const reader of readers) {
      if (reader.buffered > MAX_BEHIND) {
        readers.delete(reader);
        reader.close(TRY_AGAIN_LATER, 'the reader is too slow');
      } else reader.send(chunk);
    }
    sinceRotation += chunk.length;
    if (sinceRotation >= MAX_LOG_BYTES) void rotate();
  };

  const keep = async (): Promise<void> => {
    if (options.log) {
      tail = await readTail(logFile);
      await rotate();
    }
    while (!signal.aborted) {
      try {
        const socket = await connectUnix(join(directory, VM_FILES.serial), { clock, timeoutMs: 2000, signal });
        line = socket;
        socket.on('data', onData);
        await new Promise<void>((resolve) => {
          const stop = (): void => {
            socket.destroy();
            resolve();
          };
          socket.on('error', () => {});
          socket.once('close', () => {
            signal.removeEventListener('abort', stop);
            resolve();
          });
          signal.addEventListener('abort', stop, { once: true });
          if (signal.aborted) stop();
        });
        line = undefined;
      } catch {
        // Not up yet, or gone for good: then the signal comes soon.
      }
      await clock.sleep(RETRY_MS, signal).catch(() => {});
    }
    for (const reader of readers) reader.close(1000, 'the guest has ended');
    readers.clear();
  };
  void keep();

  return {
    tail: () => tail,
    attach(socket) {
      if (signal.aborted || readers.size >= MAX_READERS) {
        socket.close(TRY_AGAIN_LATER, signal.aborted ? 'the guest has ended' : 'too many readers');
        return;
      }
      if (tail.length > 0) socket.send(tail);
      readers.add(socket);
      socket.onMessage((data) => {
        // What nobody takes is dropped: a serial line has no flow control here.
        if (line && line.writableLength < MAX_BEHIND) line.write(data);
      });
      socket.onClose(() => readers.delete(socket));
    },
  };
}

async function readTail(path: string): Promise<Uint8Array> {
  try {
    const file = await open(path, 'r');
    try {
      const { size } = await file.stat();
      const length = Math.min(size, TAIL_BYTES);
      const bytes = new Uint8Array(length);
      const { bytesRead } = await file.read(bytes, 0, length, size - length);
      return bytes.subarray(0, bytesRead);
    } finally {
      await file.close();
    }
  } catch {
    return new Uint8Array(0);
  }
}
