/** Why a port of an address cannot be bound: QEMU only says that it could not. */
import { createSocket } from 'node:dgram';
import { createServer } from 'node:net';

export type BindResult = 'free' | 'in-use' | 'denied' | 'other';

const resultOf = (error: NodeJS.ErrnoException): BindResult =>
  error.code === 'EADDRINUSE' ? 'in-use' : error.code === 'EACCES' || error.code === 'EPERM' ? 'denied' : 'other';

/** Binds and lets go at once. */
export function probeBind(protocol: 'tcp' | 'udp', address: string, port: number): Promise<BindResult> {
  return new Promise((resolve) => {
    if (protocol === 'udp') {
      const socket = createSocket('udp4');
      socket.once('error', (error) => {
        socket.close();
        resolve(resultOf(error));
      });
      socket.bind({ address, port, exclusive: true }, () => socket.close(() => resolve('free')));
      return;
    }
    const server = createServer();
    server.once('error', (error) => resolve(resultOf(error)));
    server.listen({ host: address, port, exclusive: true }, () => server.close(() => resolve('free')));
  });
}
