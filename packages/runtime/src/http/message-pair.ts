import type { MessageSocket } from './seam.ts';

/** Messages held for a side that has not begun to listen; past this many bytes the pair is closed. */
const MAX_HELD = 4 * 1024 * 1024;

interface End {
  deliver(data: Uint8Array, binary: boolean): void;
  ended(code: number, reason: string): void;
  readonly socket: MessageSocket;
}

/**
 * Two joined message sockets: what one sends, the other receives. For the caller of an upgrade: give one end to
 * `upgrade.accept` and keep the other. Delivery is on a microtask, in order.
 */
export function createMessagePair(protocol: string): readonly [MessageSocket, MessageSocket] {
  let closed = false;
  const make = (other: () => End): End => {
    let listener: ((data: Uint8Array, binary: boolean) => void) | undefined;
    const closeListeners: ((code: number, reason: string) => void)[] = [];
    let end: [number, string] | undefined;
    const held: [Uint8Array, boolean][] = [];
    let heldBytes = 0;
    const close = (code = 1000, reason = ''): void => {
      if (closed) return;
      closed = true;
      queueMicrotask(() => {
        self.ended(code, reason);
        other().ended(code, reason);
      });
    };
    const self: End = {
      deliver(data, binary) {
        if (listener) return listener(data, binary);
        heldBytes += data.length;
        if (heldBytes > MAX_HELD) return close(1009, 'nobody reads');
        held.push([data, binary]);
      },
      ended(code, reason) {
        end = [code, reason];
        for (const listener of closeListeners.splice(0)) listener(code, reason);
      },
      socket: {
        protocol,
        send(data) {
          if (closed) return;
          const text = typeof data === 'string';
          const bytes = text ? new TextEncoder().encode(data) : data;
          queueMicrotask(() => other().deliver(bytes, !text));
        },
        get buffered() {
          return 0;
        },
        close,
        onMessage(next) {
          listener = next;
          heldBytes = 0;
          for (const [data, binary] of held.splice(0)) next(data, binary);
        },
        onClose(next) {
          if (end) next(...end);
          else closeListeners.push(next);
        },
      },
    };
    return self;
  };
  const near: End = make(() => far);
  const far: End = make(() => near);
  return [near.socket, far.socket];
}
