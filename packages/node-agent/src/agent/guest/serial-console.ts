/**
 * The serial console of one guest. QEMU serves one client on its socket: that is us, always reading. As upstream, one
 * client has the console and the next takes it over; it gets what the guest writes from then on, or the tail first where
 * it asks for that. The tail is kept in memory and, by QEMU itself, in a log file that we keep short.
 */
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { MessageSocket } from '@coracle/runtime/http/seam';
import { cutLog, MAX_LOG_BYTES } from '../../disk/cut-log.ts';
import { VM_FILES } from '../../qemu/argv.ts';
import { connectUnix } from '../../qmp/unix-socket.ts';
import { readTail } from '../requests/pod-logs.ts';

/** Replayed to a client that asks for the backlog. */
const TAIL_BYTES = 64 * 1024;
/** A client that is this far behind is let go. */
const MAX_BEHIND = 1024 * 1024;
/** Input that waits for the connection to QEMU, which comes a moment after the guest runs; more is dropped. */
const MAX_WAITING = 4 * 1024;
const RETRY_MS = 500;
const NORMAL = 1000;
const TRY_AGAIN_LATER = 1013;

/** Connects to the console of the VM in `directory` and stays connected until the signal fires. */
export function openSerialConsole(
  directory: string,
  options: { readonly clock: Clock; readonly signal: AbortSignal; readonly log: boolean },
) {
  const { clock, signal } = options;
  let client: MessageSocket | undefined;
  let tail: Uint8Array = new Uint8Array(0);
  let line: Socket | undefined;
  let waiting: Uint8Array = new Uint8Array(0);
  let sinceRotation = 0;
  let rotating = false;
  const logFile = join(directory, VM_FILES.serialLog);

  const remember = (chunk: Uint8Array): void => {
    const joined = Buffer.concat([tail, chunk]);
    tail = joined.length > TAIL_BYTES ? Buffer.from(joined.subarray(joined.length - TAIL_BYTES)) : joined;
  };

  const rotate = async (): Promise<void> => {
    if (rotating || !options.log) return;
    rotating = true;
    // What comes while the log is cut counts for the next time, which is at once where the disk is slower than the guest.
    do {
      sinceRotation = 0;
      // No room or no file: tried again with the next megabyte.
      const left = await cutLog(logFile).catch(() => 0);
      // Added after the wait: what has come meanwhile counts too.
      sinceRotation += left;
    } while (sinceRotation >= MAX_LOG_BYTES);
    rotating = false;
  };

  const onData = (chunk: Buffer): void => {
    remember(chunk);
    if (client && client.buffered > MAX_BEHIND) {
      const slow = client;
      client = undefined;
      slow.close(TRY_AGAIN_LATER, 'the reader is too slow');
    } else client?.send(chunk);
    sinceRotation += chunk.length;
    if (sinceRotation >= MAX_LOG_BYTES) void rotate();
  };

  const keep = async (): Promise<void> => {
    if (options.log) {
      tail = (await readTail(logFile, TAIL_BYTES)).bytes;
      await rotate();
    }
    while (!signal.aborted) {
      try {
        const socket = await connectUnix(join(directory, VM_FILES.serial), { clock, timeoutMs: 2000, signal });
        line = socket;
        socket.on('data', onData);
        socket.write(waiting);
        waiting = new Uint8Array(0);
        await once(socket, 'close', { signal }).catch(() => socket.destroy());
        line = undefined;
      } catch {
        // Not up yet, or gone for good: then the signal comes soon.
      }
      await clock.sleep(RETRY_MS, signal).catch(() => {});
    }
    client?.close(NORMAL, 'the guest has ended');
    client = undefined;
  };
  void keep();

  return {
    /** The last bytes, for status and tests. */
    tail: (): Uint8Array => tail,
    /**
     * Gives the console to a client and closes that of the one before: what the guest writes goes to it, after the tail if
     * `backlog` says so; its input goes to the guest.
     */
    attach(socket: MessageSocket, { backlog = false } = {}): void {
      if (signal.aborted) {
        socket.close(TRY_AGAIN_LATER, 'the guest has ended');
        return;
      }
      const before = client;
      client = socket;
      waiting = new Uint8Array(0);
      before?.close(NORMAL, 'another client has taken over the console');
      if (backlog && tail.length > 0) socket.send(tail);
      socket.onMessage((data) => {
        if (client !== socket) return;
        // What nobody takes is dropped: a serial line has no flow control here.
        if (line && line.writableLength < MAX_BEHIND) line.write(data);
        else if (!line && waiting.length + data.length <= MAX_WAITING) waiting = Buffer.concat([waiting, data]);
      });
      socket.onClose(() => {
        if (client === socket) client = undefined;
      });
    },
  };
}

export type SerialConsole = ReturnType<typeof openSerialConsole>;
