/** Holds up the memory stream of a live migration where its source's agent takes it from QEMU, as a busy host would. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { Server, Socket } from 'node:net';
import type { Writable } from 'node:stream';

const SERVER = 'net.server.socket';
const CLIENT = 'net.client.socket';
/** What the agent tells QEMU when the guest stands still and the last of it goes. */
const LAST = '"migrate-continue"';

export interface HeldLine {
  /** How often it was held up. */
  readonly times: number;
  end(): void;
}

/** From the last part of each guest on its stream stands still for `ms`; what QEMU writes meanwhile waits in the kernel. */
export function holdLine(ms: number): HeldLine {
  let lines: { readonly from: Socket; readonly to: Writable }[] = [];
  let times = 0;
  const onServer = (message: unknown): void => {
    const { socket } = message as { socket: Socket & { server?: Server } };
    const address = socket.server?.address();
    if (typeof address !== 'string' || !address.endsWith('/migrate-out.sock')) return;
    const pipe = socket.pipe.bind(socket);
    socket.pipe = ((to: Writable) => {
      lines.push({ from: socket, to });
      return pipe(to);
    }) as typeof socket.pipe;
  };
  const watchWrites = (socket: Socket): void => {
    const write = socket.write.bind(socket);
    socket.write = ((...args: Parameters<typeof write>) => {
      if (typeof args[0] === 'string' && args[0].includes(LAST)) {
        for (const { from, to } of lines) {
          times++;
          from.unpipe(to).pause();
          setTimeout(() => {
            if (!from.destroyed) from.pipe(to);
          }, ms);
        }
        lines = [];
      }
      return write(...args);
    }) as typeof socket.write;
  };
  // Connecting puts back what was put over `write`.
  const onClient = (message: unknown): void =>
    queueMicrotask(() => watchWrites((message as { socket: Socket }).socket));
  subscribe(SERVER, onServer);
  subscribe(CLIENT, onClient);
  return {
    get times() {
      return times;
    },
    end() {
      unsubscribe(SERVER, onServer);
      unsubscribe(CLIENT, onClient);
    },
  };
}
