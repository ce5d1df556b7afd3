import type { Duplex } from 'node:stream';
import type { MessageSocket } from './seam.ts';

/**
 * A connection that was upgraded to something else than a WebSocket, as a MessageSocket: whatever bytes come are one
 * message. Nothing is read before somebody listens; `head` (what came with the request or answer) is delivered first.
 * There is no half-closed state: when the far end has sent its last byte, the connection ends.
 */
export function byteSocket(
  duplex: Duplex,
  { protocol, head }: { readonly protocol: string; readonly head: Uint8Array },
): MessageSocket {
  let failed = false;
  duplex.on('error', () => {
    failed = true;
  });
  const close = (): void => {
    if (!duplex.writableEnded) duplex.end(() => duplex.destroy());
  };
  duplex.once('end', close);
  return {
    protocol,
    send(data) {
      if (!duplex.destroyed && !duplex.writableEnded) duplex.write(data);
    },
    get buffered() {
      return duplex.writableLength;
    },
    close,
    pause: () => void duplex.pause(),
    resume: () => void duplex.resume(),
    onMessage(listener) {
      if (head.length > 0) duplex.unshift(head);
      duplex.on('data', (chunk: Buffer) => listener(chunk, true));
      duplex.resume();
    },
    onClose(listener) {
      // What the codes of RFC 6455 call a normal end, and one without a word.
      const report = (): void => listener(failed ? 1006 : 1000, '');
      if (duplex.closed) queueMicrotask(report);
      else duplex.once('close', report);
    },
  };
}
