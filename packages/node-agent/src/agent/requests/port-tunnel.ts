/** Joins a message socket to a TCP port of a guest, or to any other connection. */
import type { Socket } from 'node:net';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { MessageSocket } from '@coracle/runtime/http/seam';
import { CONNECT_MS, MAX_BUFFERED, passOn } from './guest-line.ts';

/** Pumps between a message socket and a connection, open or about to be, until one side ends. */
export function tunnel(socket: MessageSocket, line: Socket, { clock }: { readonly clock: Clock }): void {
  let open = true;
  const close = (code: number, reason: string): void => {
    if (!open) return;
    open = false;
    cancel();
    line.destroy();
    socket.resume?.();
    socket.close(code, reason);
  };
  const cancel = clock.schedule(CONNECT_MS, () => close(1011, 'the guest does not answer'));
  if (line.connecting) line.once('connect', cancel);
  else cancel();
  passOn(line, { pass: (bytes) => socket.send(bytes), waiting: () => socket.buffered, open: () => open }, clock);
  line.once('end', () => close(1000, ''));
  line.once('error', (error) => close(1011, error.message.slice(0, 100)));
  line.once('close', () => close(1000, ''));
  socket.onMessage((data) => {
    if (line.writableLength > 16 * MAX_BUFFERED) close(1013, 'the guest reads too slowly');
    else if (open) line.write(data);
    if (open && line.writableLength > MAX_BUFFERED) socket.pause?.();
  });
  line.on('drain', () => socket.resume?.());
  socket.onClose(() => {
    if (!open) return;
    open = false;
    cancel();
    // What was received is still delivered.
    line.end();
    clock.schedule(CONNECT_MS, () => line.destroy());
  });
}
