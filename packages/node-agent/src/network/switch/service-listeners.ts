/**
 * Ports of this host that stand for Services: node ports, and ports of load balancers. A connection goes to an endpoint that
 * is ready, by the port of the guest that is forwarded on its host. One that could not be had is tried again: of several
 * nodes of one host that share an address one has it, and serves the endpoints of all.
 */

import { createSocket, type Socket as UdpSocket } from 'node:dgram';
import { createServer, type Server, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Clock } from '@coracle/runtime/clock/clock';
import { joinStreams } from '../join-streams.ts';
import { type ClientAffinity, createClientAffinity } from './client-affinity.ts';
import { chooseTarget } from './service-connections.ts';
import type { ListenerTarget, NetworkListener } from './switch-state.ts';

const RETRY_MS = 3000;
/** Of one port. */
const MAX_CONNECTIONS = 1024;
/** Endpoints that are tried for one connection. */
const MAX_TRIES = 3;
/** Clients of a port by UDP; one that is silent is forgotten. */
const MAX_CLIENTS = 1024;
const SILENT_MS = 180_000;

export interface ServiceListeners {
  /** The ports that there shall be; the others are closed, open connections go on. */
  set(listeners: readonly NetworkListener[]): void;
}

export interface ServiceListenersOptions {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Connects to an endpoint, here or by its node. */
  readonly dial: (target: ListenerTarget) => Promise<Duplex>;
  /** A port could not be had, for a reason that may stay. */
  readonly onProblem: (listener: NetworkListener, code: string) => void;
}

interface OpenPort {
  listener: NetworkListener;
  turn: number;
  readonly affinity: ClientAffinity;
  close(): void;
}

const keyOf = ({ protocol, host, port }: NetworkListener): string => `${protocol}/${host}/${port}`;

/** Targets in the order in which they are tried: the one that the client stays with first, or the next in turn. */
function inTurn(open: OpenPort, client: string): ListenerTarget[] {
  const { targets, affinitySeconds } = open.listener;
  const stays = affinitySeconds !== undefined && targets.length > 0;
  const last = stays ? (open.affinity.find(client, open.listener) ?? chooseTarget(open.listener, client)) : undefined;
  const at = last ? targets.indexOf(last) : open.turn++ % targets.length;
  return [...targets.slice(at), ...targets.slice(0, at)];
}

/** Makes them; all are closed with the signal. */
export function createServiceListeners(options: ServiceListenersOptions): ServiceListeners {
  const { clock, signal } = options;
  const ports = new Map<string, OpenPort>();
  signal.addEventListener('abort', () => {
    for (const port of ports.values()) port.close();
  });
  return {
    set(listeners) {
      const wanted = new Map(listeners.map((listener) => [keyOf(listener), listener]));
      for (const [key, open] of ports) {
        const listener = wanted.get(key);
        if (listener) open.listener = listener;
        else {
          open.close();
          ports.delete(key);
        }
      }
      for (const [key, listener] of wanted) {
        if (ports.has(key)) continue;
        const open: OpenPort = { listener, turn: 0, affinity: createClientAffinity(clock.monotonic), close: () => {} };
        ports.set(key, open);
        keepPort(open, options, clock);
      }
    },
  };
}

function keepPort(open: OpenPort, options: ServiceListenersOptions, clock: Clock): void {
  let isClosed = false;
  let cancel = (): void => {};
  let known = '';
  const listen = (): void => {
    const failed = (error: NodeJS.ErrnoException): void => {
      if (isClosed) return;
      const code = error.code ?? error.message;
      if (code !== known) options.onProblem(open.listener, code);
      known = code;
      cancel = clock.schedule(RETRY_MS, listen);
    };
    const end = open.listener.protocol === 'udp' ? listenUdp(open, clock, failed) : listenTcp(open, options, failed);
    open.close = () => {
      isClosed = true;
      cancel();
      end();
    };
  };
  listen();
}

function listenTcp(open: OpenPort, { dial }: ServiceListenersOptions, failed: (error: Error) => void): () => void {
  const serve = async (socket: Socket): Promise<void> => {
    const client = socket.remoteAddress ?? '';
    for (const target of inTurn(open, client).slice(0, MAX_TRIES)) {
      const far = await dial(target).catch(() => undefined);
      if (!far) continue;
      open.affinity.note(client, target);
      if (socket.destroyed) far.destroy();
      else joinStreams(socket, far);
      return;
    }
    socket.resetAndDestroy();
  };
  const server: Server = createServer({ pauseOnConnect: true, allowHalfOpen: true }, (socket) => {
    socket.on('error', () => {});
    void serve(socket);
  });
  server.maxConnections = MAX_CONNECTIONS;
  server.once('error', failed);
  server.listen({ host: open.listener.host, port: open.listener.port, exclusive: true });
  return () => void server.close();
}

/** Datagrams of a client go to one endpoint, and its answers back; endpoints of other hosts are out of reach. */
function listenUdp(open: OpenPort, clock: Clock, failed: (error: Error) => void): () => void {
  const clients = new Map<string, { readonly far: UdpSocket; cancel: () => void }>();
  const near = createSocket('udp4');
  near.once('error', failed);
  near.on('message', (message, { address, port }) => {
    const name = `${address}:${port}`;
    let client = clients.get(name);
    const forget = (): void => {
      clients.get(name)?.cancel();
      clients.get(name)?.far.close();
      clients.delete(name);
    };
    if (!client) {
      const found = inTurn(open, address).find(({ at }) => at !== undefined);
      const target = found?.at;
      if (!target || clients.size >= MAX_CLIENTS) return;
      open.affinity.note(address, found);
      const far = createSocket('udp4');
      far.on('error', forget);
      far.on('message', (answer) => near.send(answer, port, address));
      far.connect(target.port, target.host);
      client = { far, cancel: () => {} };
      clients.set(name, client);
      const first = Buffer.from(message);
      far.once('connect', () => far.send(first));
    } else {
      try {
        client.far.send(message);
      } catch {
        // Not connected yet: a datagram that is lost, as any may be.
      }
    }
    client.cancel();
    client.cancel = clock.schedule(SILENT_MS, forget);
  });
  near.bind({ address: open.listener.host, port: open.listener.port, exclusive: true });
  return () => {
    for (const { far, cancel } of clients.values()) {
      cancel();
      far.close();
    }
    clients.clear();
    near.close();
  };
}
