/** The ports of a target: open for one migration, for its source node only, and gone with it. */
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer, type TLSSocket } from 'node:tls';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { Logger } from '@coracle/runtime/log/log';
import { type PeerIdentity, peerProblem } from '../../network/peer.ts';
import { type ChannelHeader, readHeader } from './channel.ts';

export interface PeerListenerOptions {
  readonly host: string;
  readonly identity: PeerIdentity;
  /** The only node that may connect. */
  readonly sourceNode: string;
  readonly migration: string;
  readonly clock: Clock;
  readonly log: Logger;
  /** The header has been read; the rest of the stream waits. */
  readonly onChannel: (header: ChannelHeader, socket: TLSSocket) => void;
}

const MAX_CONNECTIONS = 128;
const HANDSHAKE_MS = 5000;

/** Opens a port of the system's choice. */
export async function openPeerListener(options: PeerListenerOptions) {
  const { identity, clock, log } = options;
  const sockets = new Set<{ destroy(): unknown }>();
  const { certificate, key } = identity.pair();
  const server = createServer({
    cert: certificate,
    key,
    ca: identity.ca,
    requestCert: true,
    rejectUnauthorized: true,
    minVersion: 'TLSv1.3',
    handshakeTimeout: HANDSHAKE_MS,
  });
  server.maxConnections = MAX_CONNECTIONS;
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  server.on('tlsClientError', (error) => log.warn('migration connection refused', { error: error.message }));
  server.on('secureConnection', (socket) => {
    socket.on('error', () => {});
    const expected = { ca: identity.ca, nodeName: options.sourceNode, now: clock.now() };
    const problem = peerProblem(socket, expected);
    if (problem !== undefined) {
      log.warn('migration connection refused', { peer: socket.remoteAddress, error: problem });
      socket.destroy();
      return;
    }
    readHeader(socket, { clock }).then(
      (header) => {
        if (header.migration === options.migration) options.onChannel(header, socket);
        else socket.destroy();
      },
      (error: Error) => {
        log.warn('migration connection refused', { error: error.message });
        socket.destroy();
      },
    );
  });
  server.listen(0, options.host);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    port,
    async close(): Promise<void> {
      for (const socket of sockets) socket.destroy();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

export type PeerListener = Awaited<ReturnType<typeof openPeerListener>>;
