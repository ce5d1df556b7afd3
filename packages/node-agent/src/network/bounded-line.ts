/** A connection that takes whole frames, and drops what it has no room for, as any busy line does. */
import type { Duplex } from 'node:stream';

/** Bytes that wait for the far end. */
const MAX_WAITING = 1024 * 1024;

/** Writes pieces as they are; each is dropped whole while more than 1 MiB waits. */
export const boundedLine = (socket: Duplex): { write(bytes: Uint8Array): void } => ({
  write(bytes) {
    if (socket.writable && socket.writableLength <= MAX_WAITING) socket.write(bytes);
  },
});
