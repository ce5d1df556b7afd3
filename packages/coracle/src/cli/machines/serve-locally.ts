/** Ports of this host whose connections are joined to streams of a machine, as long as a command runs. */

import { createServer, type Server, type Socket } from 'node:net';
import { byteSocket } from '@coracle/runtime/http/byte-socket';
import { type MessageSocket, NO_BYTES } from '@coracle/runtime/http/seam';
import { aborted } from '@coracle/runtime/signal/abortable';
import { type CommandContext, CommandError, oneLine } from '../command.ts';

/** Where commands listen by default: nobody but this host can connect. */
export const DEFAULT_ADDRESS = '127.0.0.1';

/** A port of this host, and what stands behind it. */
export interface LocalPort {
  /** 0 for any that is free. */
  readonly local: number;
  /** `port 80 of default/web`: said when the port is there, and before what a connection failed of. */
  readonly what: string;
  /** Joins one connection, until either end closes. Rejects when the server refuses. */
  join(socket: MessageSocket): Promise<void>;
}

/**
 * Listens at all of them, prints `ADDRESS:PORT is WHAT` for each, and resolves when the command is stopped. A connection
 * that the server refuses is closed, with a note. Throws CommandError for a port that is not free.
 */
export async function serveLocally(
  { print, note, signal }: Pick<CommandContext, 'print' | 'note' | 'signal'>,
  address: string,
  ports: readonly LocalPort[],
): Promise<void> {
  const servers: Server[] = [];
  const lines = new Set<Socket>();
  const serve = (line: Socket, { what, join }: LocalPort): void => {
    lines.add(line);
    line.once('close', () => lines.delete(line));
    line.on('error', () => {}); // the close of the line says it to the far end
    join(byteSocket(line, { protocol: '', head: NO_BYTES })).catch((error: unknown) => {
      note(`${what}: ${oneLine(error)}`);
      line.destroy();
    });
  };
  try {
    for (const port of ports) {
      const server = createServer((line) => serve(line, port));
      servers.push(server);
      await new Promise<void>((resolve, reject) => {
        server.once('error', (error: NodeJS.ErrnoException) =>
          reject(new CommandError(`cannot listen on port ${port.local} of ${address}: ${error.message}`)),
        );
        server.listen(port.local, address, resolve);
      });
      const bound = server.address();
      print(`${address}:${typeof bound === 'object' && bound !== null ? bound.port : port.local} is ${port.what}`);
    }
    await aborted(signal);
  } finally {
    for (const server of servers) server.close();
    for (const line of lines) line.destroy();
  }
}
