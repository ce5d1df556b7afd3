/**
 * The HTTPS front: one TLS port for HTTP/1.1, HTTP/2 and WebSocket, handing plain values to an ApiHandler. HTTP/2 goes
 * through the stream event, not the compatibility layer, which costs a fifth of the throughput. A connection is routed
 * by its ALPN protocol to one of two bare protocol servers, so neither sees the other's traffic.
 */
import { X509Certificate } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  constants,
  createServer as createHttp2Server,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { createServer as createTlsServer, type TLSSocket } from 'node:tls';
import type { Logger } from '../log/log.ts';
import { BodyBudget } from './body-budget.ts';
import { type Connection, type ConnectionLimits, Connections, SWEEP_MS } from './connections.ts';
import { peerOf, rememberPeer } from './describe-peer.ts';
import { declaredLength, IncomingBody, leaveRest } from './receive-body.ts';
import type { ApiHandler, ApiResponse, ByteSink, Peer } from './seam.ts';
import { serveUpgrades, writeRefusal } from './upgrades.ts';
import { WireRequest } from './wire-request.ts';
import { BLOCK_BYTES, sizeOf, writeParts } from './write-body.ts';

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
/** Upstream's limits: header bytes, streams a connection, idle and header time-outs. */
const MAX_HEADER_BYTES = MIB;
const MAX_STREAMS = 100;
/** What one HTTP/2 connection may hold before new streams are refused; Node's own 10 is too little for concurrent lists. */
const MAX_SESSION_MB = 128;
const IDLE_MS = 90_000;
const HEADERS_MS = 32_000;
/** A whole HTTP/1.1 request must have arrived within this time; streams and upgrades go on behind it. */
const REQUEST_MS = 60_000;
/** Above all that `Connections` lets stay, so that it decides who goes: whoever is beyond this is not even heard. */
const MAX_CONNECTIONS = 12_000;
/** Bytes of request bodies that are in memory at once, and what of one body comes before anybody has asked for it. */
const MAX_BODY_BYTES = 256 * MIB;
const BODY_WINDOW = 64 * 1024 - 1;
/** A TLS handshake must be over within this time. */
const HANDSHAKE_MS = 10_000;
/** One WebSocket message; consoles and port forwards send far less. */
const MAX_MESSAGE = 4 * MIB;
/** Starts the server; resolves when it listens. Rejects when the port cannot be bound. */
export async function startTlsServer(options: TlsServerOptions): Promise<TlsServer> {
  const { handler, log, tls } = options;
  const limit = options.bodyLimit ?? 3 * MIB;
  const handle = options.bodiesWhenAsked ? handler : withBody(handler);
  const frontProxyCa = tls.frontProxyCa === undefined ? undefined : new X509Certificate(tls.frontProxyCa);
  const sockets = new Set<TLSSocket>();
  const budget = new BodyBudget(options.bodyBytes ?? MAX_BODY_BYTES);
  const connections = new Connections(options.connections);
  const connectionOf = new WeakMap<object, Connection>();
  let closing = false;
  const sessions = new Set<ServerHttp2Session>();

  // Not by an import: the module's namespace would touch every export, and with it load the whole of fetch (60 ms, 6 MB).
  const http1 = process.getBuiltinModule('node:http').createServer({
    maxHeaderSize: MAX_HEADER_BYTES,
    headersTimeout: HEADERS_MS,
    keepAliveTimeout: IDLE_MS,
    requestTimeout: REQUEST_MS,
    noDelay: true,
  });
  // It never listens itself; this makes it keep count of its connections, without which its time-outs are not watched.
  http1.emit('listening');
  const http2 = createHttp2Server({
    maxSessionMemory: MAX_SESSION_MB,
    settings: {
      maxConcurrentStreams: MAX_STREAMS,
      initialWindowSize: BODY_WINDOW,
      maxHeaderListSize: MAX_HEADER_BYTES,
    },
    maxHeaderListPairs: 1000,
  });
  const serveHttp1 = (request: IncomingMessage, response: ServerResponse, waits: boolean): void => {
    if (request.httpVersionMajor !== 1) {
      refuseVersion(request.socket);
      return;
    }
    const peer = peerOf(request.socket);
    if (!peer) return void request.socket.destroy();
    const connection = connectionOf.get(request.socket);
    const over = connection?.begin();
    const length = declaredLength(request.headers['content-length']);
    const hasBody = length !== undefined || request.headers['transfer-encoding'] !== undefined;
    const goOn = waits ? (): void => response.writeContinue() : undefined;
    const body = hasBody ? new IncomingBody({ source: request, length, limit, budget, goOn }) : undefined;
    const wire = new WireRequest({
      method: request.method ?? 'GET',
      target: request.url ?? '/',
      headers: request.headers as Record<string, string>,
      rawHeaders: request.rawHeaders,
      body,
      identify: (owner) => connection?.identify(owner),
      peer,
      upgradable: false,
    });
    response.on('close', () => {
      over?.();
      body?.release();
      if (!response.writableFinished) wire.abort();
      if (closing) request.socket.destroySoon();
    });
    answer(handle(wire), log, (reply) => {
      // A body cut short must not be read on as the next request.
      if (body) leaveRest(request, response, { limit, waits });
      writeHttp1(response, reply, wire);
    });
  };
  http1.on('request', (request, response) => serveHttp1(request, response, false));
  http1.on('checkContinue', (request, response) => serveHttp1(request, response, true));

  serveUpgrades(http1, {
    handler,
    maxMessage: MAX_MESSAGE,
    peerOf,
    refuseVersion,
    connectionOf: (socket) => connectionOf.get(socket),
    answer: (reply, write) => answer(reply, log, write),
  });
  http1.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => {
    const status = error.code === 'HPE_HEADER_OVERFLOW' ? 431 : error.code === 'ERR_HTTP_REQUEST_TIMEOUT' ? 408 : 400;
    // Behind a response that has begun no error can be reported any more.
    const busy = (socket as Duplex & { _httpMessage?: unknown })._httpMessage !== undefined;
    if (socket.writable && !busy) writeRefusal(socket, { status, headers: {} });
    else socket.destroy();
  });

  const peers = new WeakMap<ServerHttp2Session, Peer>();
  http2.on('session', (session) => {
    const peer = peerOf(session.socket);
    if (!peer) return session.destroy();
    peers.set(session, peer);
    sessions.add(session);
    session.setTimeout(IDLE_MS * 20, () => session.close());
    session.on('close', () => sessions.delete(session));
    session.on('error', () => session.destroy());
  });
  http2.on('sessionError', () => {});
  http2.on('stream', (stream: ServerHttp2Stream, headers, flags, rawHeaders: string[]) => {
    stream.on('error', () => {});
    const { session } = stream;
    const peer = session && peers.get(session as ServerHttp2Session);
    if (!peer) return stream.destroy();
    const connection = session && connectionOf.get(session);
    const over = connection?.begin();
    const length = declaredLength(headers['content-length']);
    const hasBody = (flags & constants.NGHTTP2_FLAG_END_STREAM) === 0;
    const body = hasBody ? new IncomingBody({ source: stream, length, limit, budget }) : undefined;
    const wire = new WireRequest({
      method: headers[':method'] as string,
      target: headers[':path'] as string,
      headers: headers as Record<string, string>,
      rawHeaders,
      body,
      identify: (owner) => connection?.identify(owner),
      peer,
      upgradable: false,
    });
    stream.on('close', () => {
      over?.();
      body?.release();
      wire.abort();
    });
    answer(handle(wire), log, (reply) => {
      // What nobody asked for is not kept, however long the answer takes to be read.
      if (body && !stream.readableEnded) stream.resume();
      writeHttp2(stream, reply, wire);
      if (body && !stream.destroyed && !stream.readableEnded && typeof reply.body !== 'function')
        stream.close(constants.NGHTTP2_NO_ERROR);
    });
  });

  const server = createTlsServer({
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
  });
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
      closing = true;
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

/** For a handler that asks for no body: it has been read when it is called. */
const withBody =
  (handler: ApiHandler): ApiHandler =>
  (request) => {
    if (request.receive === undefined) return handler(request);
    return request.receive('').then((outcome) => (outcome === 'here' ? handler(request) : NO_ROOM));
  };

const NO_ROOM: ApiResponse = { status: 503, headers: { 'retry-after': '1' } };

/** A request line of another version than HTTP/1 speaks is answered in words of it, and nothing behind it is read. */
function refuseVersion(socket: Duplex): void {
  const text = '505 HTTP Version Not Supported: unsupported protocol version';
  writeRefusal(socket, {
    status: 505,
    headers: { 'content-type': 'text/plain; charset=utf-8' },
    body: new TextEncoder().encode(text),
  });
}

function answer(reply: Promise<ApiResponse>, log: Logger, write: (reply: ApiResponse) => Promise<void> | void): void {
  reply.then(write).catch((error: unknown) => {
    log.error('request handler failed', {
      error: error instanceof Error ? (error.stack ?? error.message) : String(error),
    });
    void write({
      status: 500,
      headers: { 'content-type': 'text/plain; charset=utf-8' },
      body: new TextEncoder().encode('internal error\n'),
    });
  });
}

function writeHttp1(response: ServerResponse, reply: ApiResponse, wire: WireRequest): void {
  if (response.destroyed || response.headersSent) return;
  const { body } = reply;
  if (typeof body === 'function') {
    response.writeHead(reply.status, withCookies(reply));
    response.flushHeaders();
    body(sinkOf(response, wire));
    return;
  }
  const parts = partsOf(body);
  const size = sizeOf(parts);
  response.writeHead(reply.status, { ...withCookies(reply), 'content-length': size });
  // In one write with the head, TLS would copy the first block once more.
  if (size > BLOCK_BYTES) response.flushHeaders();
  writeParts(response, parts, size);
}

function writeHttp2(stream: ServerHttp2Stream, reply: ApiResponse, wire: WireRequest): void {
  if (stream.destroyed || stream.headersSent) return;
  const { body } = reply;
  const headers: Record<string, string | number | string[]> = { ':status': reply.status, ...withCookies(reply) };
  // Connection headers are illegal in HTTP/2 (RFC 9113, 8.2.2). Looked for first: deleting makes an object slow.
  if (headers['connection'] !== undefined) delete headers['connection'];
  if (headers['transfer-encoding'] !== undefined) delete headers['transfer-encoding'];
  if (body === undefined) stream.respond(headers, { endStream: true });
  else if (typeof body === 'function') {
    stream.respond(headers);
    body(sinkOf(stream, wire));
  } else {
    const parts = partsOf(body);
    const size = sizeOf(parts);
    headers['content-length'] = size;
    stream.respond(headers);
    writeParts(stream, parts, size);
  }
}

const withCookies = ({ headers, cookies }: ApiResponse): Readonly<Record<string, string | string[]>> =>
  cookies ? { ...headers, 'set-cookie': [...cookies] } : headers;

const partsOf = (body: Uint8Array | readonly Uint8Array[] | undefined): readonly Uint8Array[] =>
  body === undefined ? [] : body instanceof Uint8Array ? [body] : body;

function sinkOf(out: ServerResponse | ServerHttp2Stream, wire: WireRequest): ByteSink {
  return {
    write: (chunk) => !out.destroyed && !out.writableEnded && out.write(chunk),
    get buffered() {
      return out.writableLength;
    },
    drained: () =>
      new Promise((resolve) => {
        if (out.destroyed || !out.writableNeedDrain) return resolve();
        const done = (): void => {
          out.off('drain', done);
          out.off('close', done);
          resolve();
        };
        out.on('drain', done);
        out.on('close', done);
      }),
    end: () => {
      if (!out.destroyed) out.end();
    },
    fail: () => {
      // Not `close` on HTTP/2: that ends the body properly before it says that something is wrong.
      if (!out.destroyed) out.destroy('rstCode' in out ? new Error('the body broke off') : undefined);
    },
    signal: wire.signal,
  };
}
