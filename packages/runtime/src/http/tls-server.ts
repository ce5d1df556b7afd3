/**
 * The HTTPS front: one TLS port for HTTP/1.1, HTTP/2 and WebSocket, handing plain values to an ApiHandler. A connection is
 * routed by its ALPN protocol to one of two bare protocol servers, so neither sees the other's traffic.
 */
import { X509Certificate } from 'node:crypto';
import type { ServerHttp2Session } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { createServer as createTlsServer, type TLSSocket, type TlsOptions } from 'node:tls';
import type { Logger } from '../log/log.ts';
import type { Front } from './answer-request.ts';
import { BodyBudget } from './body-budget.ts';
import { type Connection, type ConnectionLimits, Connections, SWEEP_MS } from './connections.ts';
import { rememberPeer } from './describe-peer.ts';
import { createHttp1Server } from './http1-server.ts';
import { createHttp2Server } from './http2-server.ts';
import type { ApiHandler, ApiResponse } from './seam.ts';

export interface TlsServerOptions {
  readonly handler: ApiHandler;
  readonly host: string;
  /** 0 picks a free port. */
  readonly port: number;
  readonly tls: {
    /** PEM, leaf first. */
    readonly certificate: string;
    /** PEM. */
    readonly key: string;
    /** PEM of the CA that client certificates must chain to; none are asked for when absent. */
    readonly clientCa?: string;
    /** PEM of the CA of proxies that say who the user is: distinguished from the other by `PeerCertificate.authority`. */
    readonly frontProxyCa?: string;
  };
  /** Bodies are cut at this many bytes plus one, so that the handler sees "too large". */
  readonly bodyLimit?: number;
  /**
   * The handler asks for bodies itself (`ApiRequest.receive`), once it knows who sends them, and says who connects
   * (`ApiRequest.identify`). Otherwise bodies are read before it is called.
   */
  readonly bodiesWhenAsked?: boolean;
  /** Bytes of all bodies in flight; 256 MiB when not given. */
  readonly bodyBytes?: number;
  /** Parts left out take their defaults. */
  readonly connections?: Partial<ConnectionLimits>;
  readonly log: Logger;
}

export interface TlsServer {
  readonly host: string;
  readonly port: number;
  /** Stops listening and ends all connections, the idle ones at once, the busy ones after `graceMs`. */
  close(graceMs?: number): Promise<void>;
}

const MIB = 1024 * 1024;
/** Above all that `Connections` lets stay, so that it decides who goes: whoever is beyond this is not even heard. */
const MAX_CONNECTIONS = 12_000;
/** Bytes of request bodies that are in memory at once. */
const MAX_BODY_BYTES = 256 * MIB;
/** A TLS handshake must be over within this time. */
const HANDSHAKE_MS = 10_000;

/** Starts the server; resolves when it listens. Rejects when the port cannot be bound. */
export async function startTlsServer(options: TlsServerOptions): Promise<TlsServer> {
  const { handler, log, tls } = options;
  const frontProxyCa = tls.frontProxyCa === undefined ? undefined : new X509Certificate(tls.frontProxyCa);
  const sockets = new Set<TLSSocket>();
  const connections = new Connections(options.connections);
  const connectionOf = new WeakMap<object, Connection>();
  const sessions = new Set<ServerHttp2Session>();
  const front: Front = {
    handle: options.bodiesWhenAsked ? handler : withBody(handler),
    limit: options.bodyLimit ?? 3 * MIB,
    budget: new BodyBudget(options.bodyBytes ?? MAX_BODY_BYTES),
    connectionOf: (carrier) => connectionOf.get(carrier),
    log,
    closing: false,
  };
  const http1 = createHttp1Server(front, handler);
  const http2 = createHttp2Server(front, sessions);
  const server = createTlsServer(tlsOptionsOf(tls));
  server.maxConnections = MAX_CONNECTIONS;
  server.on('connection', (socket) => connections.handshake(socket));
  const sweeping = setInterval(() => connections.sweep(), SWEEP_MS).unref();
  server.on('secureConnection', (socket) => {
    socket.on('error', () => socket.destroy());
    const peer = rememberPeer(socket, frontProxyCa);
    if (!peer) return void socket.destroy();
    sockets.add(socket);
    let session: ServerHttp2Session | undefined;
    const connection = connections.established(socket, {
      close: () => session?.close(),
      destroy: () => socket.destroy(),
    });
    connectionOf.set(socket, connection);
    if (peer.certificate?.verified) connection.identify(peer.certificate.commonName);
    else if (!options.bodiesWhenAsked) connection.identify(peer.address);
    socket.on('close', () => sockets.delete(socket));
    if (socket.alpnProtocol === 'h2') {
      http2.once('session', (begun) => {
        session = begun;
        connectionOf.set(begun, connection);
      });
      http2.emit('connection', socket);
    } else http1.emit('connection', socket);
  });
  server.on('tlsClientError', (_error, socket) => socket.destroy());

  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host: options.host, port: options.port }, () => {
      server.off('error', reject);
      resolve();
    });
  });
  return {
    host: options.host,
    port: (server.address() as AddressInfo).port,
    async close(graceMs = 0) {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      front.closing = true;
      http1.close();
      for (const session of sessions) session.close();
      const cut = (): void => {
        for (const session of sessions) session.destroy();
        for (const socket of sockets) socket.destroy();
      };
      const timer = setTimeout(cut, graceMs);
      await closed;
      clearTimeout(timer);
      clearInterval(sweeping);
    },
  };
}

function tlsOptionsOf(tls: TlsServerOptions['tls']): TlsOptions {
  return {
    cert: tls.certificate,
    key: tls.key,
    ...(tls.clientCa !== undefined && {
      ca: tls.frontProxyCa === undefined ? tls.clientCa : [tls.clientCa, tls.frontProxyCa],
      requestCert: true,
      rejectUnauthorized: false,
    }),
    ALPNProtocols: ['h2', 'http/1.1'],
    minVersion: 'TLSv1.2',
    noDelay: true,
    handshakeTimeout: HANDSHAKE_MS,
  };
}

/** For a handler that asks for no body: it has been read when it is called. */
const withBody =
  (handler: ApiHandler): ApiHandler =>
  (request) => {
    if (request.receive === undefined) return handler(request);
    return request.receive('').then((outcome) => (outcome === 'here' ? handler(request) : NO_ROOM));
  };

const NO_ROOM: ApiResponse = { status: 503, headers: { 'retry-after': '1' } };
