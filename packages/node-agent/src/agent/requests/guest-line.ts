/**
 * What every way to forward a port has in common: a TCP connection to the guest on one side, a message socket on the
 * other, and neither may fill this process with what the other does not read.
 */
import { createConnection, type Socket, type TcpNetConnectOpts } from 'node:net';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { MessageSocket } from '@coracle/runtime/http/seam';

/** Bytes that may wait on either side before the other is held back; 16 times as many, and a guest is let go. */
export const MAX_BUFFERED = 1024 * 1024;
/** Until a guest must have answered; also how long what was received may take to be delivered at the end. */
export const CONNECT_MS = 10_000;
const POLL_MS = 20;

/** A port as it is written in a request; undefined for what is none. */
export const portNumber = (text: string): number | undefined =>
  /^[1-9]\d{0,4}$/.test(text) && Number(text) <= 65_535 ? Number(text) : undefined;

/**
 * Passes on what the guest sends, and stops reading it while more than MAX_BUFFERED bytes of it wait.
 *
 * @param pass takes one piece; its bytes belong to the callee
 * @param waiting bytes that the client has not taken yet
 * @param open false once nobody reads any more
 */
export function passOn(
  line: Socket,
  { pass, waiting, open }: { pass: (bytes: Buffer) => void; waiting: () => number; open: () => boolean },
  clock: Clock,
): void {
  line.on('data', (chunk: Buffer) => {
    pass(chunk);
    if (waiting() <= MAX_BUFFERED) return;
    line.pause();
    const look = (): void => {
      if (!open()) return;
      if (waiting() > MAX_BUFFERED / 2) clock.schedule(POLL_MS, look);
      else line.resume();
    };
    clock.schedule(POLL_MS, look);
  });
}

/** Stops the reading of a socket while one of its connections is behind: all of them share its bytes. */
export function createBackpressure(socket: MessageSocket) {
  const behind = new Set<Socket>();
  return {
    /** Writes to a guest; destroys the line of one that has stopped reading. */
    give(line: Socket, bytes: Uint8Array) {
      if (line.destroyed) return;
      if (line.writableLength > 16 * MAX_BUFFERED) return void line.destroy(new Error('the guest reads too slowly'));
      line.write(bytes);
      if (line.writableLength <= MAX_BUFFERED) return;
      if (behind.size === 0) socket.pause?.();
      behind.add(line);
    },
    /** The line has drained, or is gone. */
    release(line: Socket): void {
      if (behind.delete(line) && behind.size === 0) socket.resume?.();
    },
  };
}

export type Backpressure = ReturnType<typeof createBackpressure>;

/** Connects to a port of a guest; one that does not answer in time is let go. */
export function dialGuest(to: TcpNetConnectOpts, clock: Clock, brake: Backpressure): Socket {
  const line = createConnection(to);
  const cancel = clock.schedule(CONNECT_MS, () => line.destroy(new Error('the guest does not answer')));
  line.once('connect', cancel);
  line.on('drain', () => brake.release(line));
  line.once('close', () => {
    cancel();
    brake.release(line);
  });
  return line;
}
