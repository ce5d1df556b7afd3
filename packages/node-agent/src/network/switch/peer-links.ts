/**
 * The connections between the switches of two nodes: one for each pair, made by the node whose name comes first, by TLS
 * with both ends named (`peer.ts`).
 */
import { createConnection } from 'node:net';
import type { Duplex } from 'node:stream';
import { createServer, type Server, type TLSSocket } from 'node:tls';
import type { Clock } from '@coracle/runtime/clock/clock';
import { createLinkedController, type LinkedController } from '@coracle/runtime/signal/linked-controller';
import { boundedLine } from '../bounded-line.ts';
import { createFirstFrame, noteFrame, noteOf } from '../frame-stream.ts';
import { connectPeer, type PeerIdentity, peerProblem } from '../peer.ts';
import type { ClusterSwitch } from './cluster-switch.ts';
import type { ListenerTarget, NetworkListener, NetworkPeer } from './switch-state.ts';

const HANDSHAKE_MS = 5000;
const MAX_CONNECTIONS = 256;
const FIRST_RETRY_MS = 200;
const MOST_RETRY_MS = 10_000;

export interface PeerLinksOptions {
  readonly network: ClusterSwitch;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly report: (message: string) => void;
}

const DIAL_MS = 5000;

/** Connects to a forwarded port of a guest of this host. */
export function dialHere(
  at: { readonly host: string; readonly port: number } | { readonly path: string },
): Promise<Duplex> {
  return new Promise((resolve, reject) => {
    const socket = createConnection({ ...at, allowHalfOpen: true, timeout: DIAL_MS });
    socket.once('error', reject);
    socket.once('timeout', () => socket.destroy(new Error('no answer')));
    socket.once('connect', () => {
      socket.removeListener('error', reject);
      socket.on('error', () => {});
      socket.setTimeout(0);
      resolve(socket);
    });
  });
}

/** What a connection between switches is for, in its first note. */
type PeerHello =
  | { readonly type: 'hello'; readonly node: string }
  /** Bytes for an endpoint, both ways. */
  | { readonly type: 'dial'; readonly node: string; readonly address: string; readonly port: number };

/** The links of a node; they end with the signal. */
export class PeerLinks {
  readonly #options: PeerLinksOptions;
  #identity: PeerIdentity | undefined;
  #server: Server | undefined;
  readonly #accepted = new Set<TLSSocket>();
  #own = '';
  #peers = new Map<string, NetworkPeer>();
  #listeners: readonly NetworkListener[] = [];
  readonly #dialled = new Map<string, { readonly target: NetworkPeer; readonly life: LinkedController }>();

  constructor(options: PeerLinksOptions) {
    this.#options = options;
  }

  /** Listens, once; later calls change what is shown to others. Resolves with the port. */
  async identify(identity: PeerIdentity, host: string): Promise<number> {
    this.#identity = identity;
    const { certificate, key } = identity.pair();
    const shown = { cert: certificate, key, ca: identity.ca };
    if (this.#server) {
      this.#server.setSecureContext(shown);
      return portOf(this.#server);
    }
    const server = createServer({
      ...shown,
      requestCert: true,
      rejectUnauthorized: true,
      minVersion: 'TLSv1.3',
      handshakeTimeout: HANDSHAKE_MS,
    });
    this.#server = server;
    server.maxConnections = MAX_CONNECTIONS;
    this.#options.signal.addEventListener('abort', () => {
      server.close();
      for (const socket of this.#accepted) socket.destroy();
    });
    server.on('secureConnection', (socket) => this.#accept(socket));
    server.on('tlsClientError', (error) => this.#options.report(`a connection is refused: ${error.message}`));
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(0, host, () => resolve());
    });
    return portOf(server);
  }

  /** The nodes that there are, and endpoints that they may ask for; links to others end. */
  setState({
    node,
    peers,
    listeners,
  }: {
    readonly node: string;
    readonly peers: readonly NetworkPeer[];
    readonly listeners: readonly NetworkListener[];
  }): void {
    this.#own = node;
    this.#listeners = listeners;
    this.#peers = new Map(peers.map((peer) => [peer.node, peer]));
    for (const [name, { target, life }] of this.#dialled) {
      const now = this.#peers.get(name);
      if (now?.host === target.host && now.port === target.port) continue;
      life.abort(new Error('the node is elsewhere, or gone'));
      life.release();
      this.#dialled.delete(name);
    }
    for (const target of peers) {
      if (target.node <= node || this.#dialled.has(target.node)) continue;
      const life = createLinkedController(this.#options.signal);
      this.#dialled.set(target.node, { target, life });
      void this.#keepLink(target, life.signal);
    }
  }

  /** Connects to an endpoint of another node. */
  async dial({ node, address, port }: ListenerTarget): Promise<Duplex> {
    const peer = this.#peers.get(node);
    if (!peer) throw new Error(`node ${node} cannot be reached`);
    const socket = await this.#connect(peer, AbortSignal.timeout(DIAL_MS));
    socket.write(noteFrame({ type: 'dial', node: this.#own, address, port } satisfies PeerHello));
    return socket;
  }

  #connect({ node: nodeName, host, port }: NetworkPeer, signal: AbortSignal): Promise<TLSSocket> {
    if (!this.#identity) return Promise.reject(new Error('this node cannot prove its name yet'));
    return connectPeer({ host, port, nodeName }, { identity: this.#identity, clock: this.#options.clock, signal });
  }

  async #keepLink(target: NetworkPeer, life: AbortSignal): Promise<void> {
    const { clock, report } = this.#options;
    let pause = FIRST_RETRY_MS;
    while (!life.aborted) {
      try {
        const socket = await this.#connect(target, life);
        const stop = (): void => void socket.destroy();
        life.addEventListener('abort', stop, { once: true });
        socket.write(noteFrame({ type: 'hello', node: this.#own } satisfies PeerHello));
        pause = FIRST_RETRY_MS;
        await this.#carry(socket, target.node);
        life.removeEventListener('abort', stop);
      } catch (error) {
        if (!life.aborted && pause === MOST_RETRY_MS) report(`${target.node}: ${(error as Error).message}`);
      }
      await clock.sleep(pause, life).catch(() => {});
      pause = Math.min(2 * pause, MOST_RETRY_MS);
    }
  }

  /** Carries frames until the connection ends. `come`: what stood behind its first note. */
  #carry(socket: TLSSocket, node: string, come?: Uint8Array): Promise<void> {
    socket.setNoDelay(true);
    const end = this.#options.network.connectPeer(node, boundedLine(socket));
    const take = (bytes: Uint8Array): void => {
      try {
        end.take(bytes);
      } catch (error) {
        socket.destroy(error as Error);
      }
    };
    return new Promise((resolve) => {
      const close = (): void => {
        end.close();
        resolve();
      };
      socket.on('data', take);
      if (come) take(come);
      socket.on('close', close);
      if (socket.destroyed) close();
    });
  }

  /** Nothing before the first note is believed, and that only of a node that proves to be the one. */
  #accept(socket: TLSSocket): void {
    const { clock, report } = this.#options;
    this.#accepted.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => this.#accepted.delete(socket));
    const cancel = clock.schedule(HANDSHAKE_MS, () => socket.destroy());
    const first = createFirstFrame();
    const take = (bytes: Buffer): void => {
      try {
        const come = first.take(bytes);
        if (!come) return;
        cancel();
        socket.removeListener('data', take);
        const hello = (noteOf(come.frame) ?? {}) as Partial<PeerHello>;
        const { node = '' } = hello;
        const problem =
          this.#identity && this.#peers.has(node)
            ? peerProblem(socket, { ca: this.#identity.ca, nodeName: node, now: clock.now() })
            : 'no node of that name is known';
        if (problem !== undefined) throw new Error(`${JSON.stringify(node.slice(0, 253))}: ${problem}`);
        if (hello.type === 'dial') void this.#relay(socket, hello, come.rest);
        else void this.#carry(socket, node, come.rest);
      } catch (error) {
        report(`a connection is refused: ${(error as Error).message}`);
        socket.destroy();
      }
    };
    socket.on('data', take);
  }

  /** A connection of another node to a guest of this host, as one that came to a port of a Service here. */
  async #relay(
    socket: TLSSocket,
    { address, port }: { readonly address?: string; readonly port?: number },
    come: Uint8Array,
  ): Promise<void> {
    const at = this.#listeners
      .flatMap(({ protocol, targets }) => (protocol === 'tcp' ? targets : []))
      .find((target) => target.address === address && target.port === port)?.at;
    socket.pause();
    if (come.length > 0) socket.unshift(come);
    const far = at && (await dialHere(at).catch(() => undefined));
    if (!far || socket.destroyed) {
      far?.destroy();
      socket.destroy();
      return;
    }
    socket.on('close', () => far.destroy());
    far.on('close', () => socket.destroy());
    socket.pipe(far).pipe(socket);
  }
}

function portOf(server: Server): number {
  const address = server.address();
  return typeof address === 'object' && address ? address.port : 0;
}
