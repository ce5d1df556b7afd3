/** A unix socket in a VM's directory for its QEMU to connect to, also where the path is longer than the kernel's 107 bytes. */
import { once } from 'node:events';
import { open, rm } from 'node:fs/promises';
import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';

/** QEMU opens one for the memory and one for each disk. */
const MAX_CONNECTIONS = 128;

/** Listens on `name` in `directory`; what was there under that name goes. `paused`: nothing is read before somebody does; `halfOpen`: an end of theirs is none of ours. */
export async function listenUnix(
  directory: string,
  name: string,
  onConnection: (socket: Socket) => void,
  { paused = false, halfOpen = false }: { readonly paused?: boolean; readonly halfOpen?: boolean } = {},
) {
  const path = join(directory, name);
  await rm(path, { force: true });
  const handle = await open(directory, 'r');
  const sockets = new Set<Socket>();
  const server = createServer({ pauseOnConnect: paused, allowHalfOpen: halfOpen }, (socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
    onConnection(socket);
  });
  server.maxConnections = MAX_CONNECTIONS;
  try {
    server.listen(`/proc/self/fd/${handle.fd}/${name}`);
    await once(server, 'listening');
  } finally {
    await handle.close();
  }
  return {
    async close(): Promise<void> {
      for (const socket of sockets) socket.destroy();
      await new Promise<void>((resolve) => server.close(() => resolve()));
      await rm(path, { force: true });
    },
  };
}

export type UnixListener = Awaited<ReturnType<typeof listenUnix>>;
