/** JSON messages over a connection, one a line. */
import type { Duplex } from 'node:stream';

/** A network with thousands of Pods and Services is far below. */
const MAX_LINE = 64 * 1024 * 1024;

/** Calls back with each message; destroys the connection at what is none, or is longer than `max` (64 MiB). */
export function readLines(socket: Duplex, take: (message: unknown) => void, max = MAX_LINE): void {
  const decoder = new TextDecoder();
  let held: string[] = [];
  let length = 0;
  socket.on('data', (chunk: Buffer) => {
    const lines = decoder.decode(chunk, { stream: true }).split('\n');
    const last = lines.pop() ?? '';
    for (const line of lines) {
      const whole = held.join('') + line;
      held = [];
      length = 0;
      try {
        take(JSON.parse(whole));
      } catch (error) {
        socket.destroy(error as Error);
        return;
      }
    }
    held.push(last);
    length += last.length;
    if (length > max) socket.destroy(new Error('a line that is too long'));
  });
}

export const writeLine = (socket: Duplex, message: unknown): void => {
  if (socket.writable) socket.write(`${JSON.stringify(message)}\n`);
};
