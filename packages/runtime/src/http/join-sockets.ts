import type { Clock } from '../clock/clock.ts';
import type { MessageSocket } from './seam.ts';

/** An end this far behind stops the reading of the other one; looked at again after a while. */
const BEHIND_BYTES = 1024 * 1024;
const BEHIND_CHECK_MS = 10;
/** Where reading cannot be stopped, an end that leaves this much unread loses its connection. */
const MAX_UNSENT_BYTES = 64 * 1024 * 1024;

/**
 * Joins two message sockets until one of them closes, which closes the other. What one end cannot take yet is left in
 * the network on the other side.
 */
export function joinSockets(one: MessageSocket, other: MessageSocket, { clock }: { readonly clock: Clock }): void {
  let open = true;
  const pipe = (from: MessageSocket, to: MessageSocket): void => {
    let held = false;
    const look = (): void => {
      if (open && to.buffered > BEHIND_BYTES) {
        clock.schedule(BEHIND_CHECK_MS, look);
        return;
      }
      held = false;
      from.resume?.();
    };
    from.onMessage((data, binary) => {
      if (!open) return;
      to.send(binary ? data : decoder.decode(data));
      if (held || to.buffered <= BEHIND_BYTES) return;
      if (!from.pause) {
        if (to.buffered > MAX_UNSENT_BYTES) to.close(1013, 'receiver too slow');
        return;
      }
      held = true;
      from.pause();
      clock.schedule(BEHIND_CHECK_MS, look);
    });
    from.onClose((code, reason) => {
      open = false;
      to.close(sendableCode(code), reason.slice(0, 120));
    });
  };
  pipe(one, other);
  pipe(other, one);
}

const decoder = new TextDecoder();

/** Codes such as 1006 (broken) describe a close but may not be sent (RFC 6455, 7.4.1). */
const sendableCode = (code: number): number =>
  (code >= 1000 && code <= 1014 && ![1004, 1005, 1006].includes(code)) || (code >= 3000 && code <= 4999) ? code : 1000;
