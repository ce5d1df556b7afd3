/**
 * The HTTPS front: one TLS port for HTTP/1.1, HTTP/2 and WebSocket, handing plain values to an ApiHandler. HTTP/2 goes
 * through the stream event, not the compatibility layer, which costs a fifth of the throughput. A connection is routed
 * by its ALPN protocol to one of two bare protocol servers, so neither sees the other's traffic.
 */
import { createHash, X509Certificate } from 'node:crypto';
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
import type { ApiHandler, ApiResponse, ByteSink, Peer } from './seam.ts';
import { NO_BYTES } from './seam.ts';
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
    /** PEM of the CA of proxies that say who the user is: told apart from the other by `PeerCertificate.authority`. */
    readonly frontProxyCa?: string;
  };
  /** Bodies are cut at this many bytes plus one, so that the handler sees "too large". */
  readonly bodyLimit?: number;
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
const MAX_CONNECTIONS = 10_000;
/** One WebSocket message; consoles and port forwards send far less. */
const MAX_MESSAGE = 4 * MIB;
/** Starts the server; resolves when it listens. Rejects when the port cannot be bound. */
export async function startTlsServer(options: TlsServerOptions): Promise<TlsServer> {
  const { handler, log, tls } = options;
  const limit = options.bodyLimit ?? 3 * MIB;
  const frontProxyCa = tls.frontProxyCa === undefined ? undefined : new X509Certificate(tls.frontProxyCa);
  const sockets = new Set<TLSSocket>();
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
    settings: { maxConcurrentStreams: MAX_STREAMS, initialWindowSize: MIB, maxHeaderListSize: MAX_HEADER_BYTES },
    maxHeaderListPairs: 1000,
  });
  http1.on('request', (request: IncomingMessage, response: ServerResponse) => {
    const peer = peerOf(request.socket);
    if (!peer) return void request.socket.destroy();
    const run = (body: Uint8Array): void => {
      const wire = new WireRequest({
        method: request.method ?? 'GET',
        target: request.url ?? '/',
        headers: request.headers as Record<string, string>,
        rawHeaders: request.rawHeaders,
        body,
        peer,
        upgradable: false,
      });
      response.on('close', () => {
        if (!response.writableFinished) wire.abort();
        if (closing) request.socket.destroySoon();
      });
      answer(handler(wire), log, (reply) => writeHttp1(request, response, reply, wire));
    };
    if (request.headers['content-length'] === undefined && request.headers['transfer-encoding'] === undefined)
      run(NO_BYTES);
    else readBody(request, limit, run);
  });

  serveUpgrades(http1, {
    handler,
    maxMessage: MAX_MESSAGE,
    peerOf,
    answer: (reply, write) => answer(reply, log, write),
  });
  http1.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => {
    const status = error.code === 'HPE_HEADER_OVERFLOW' ? 431 : error.code === 'ERR_HTTP_REQUEST_TIMEOUT' ? 408 : 400;
    // Behind a response that has begun there is nothing that could still be told.
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
    const peer = stream.session && peers.get(stream.session as ServerHttp2Session);
    if (!peer) return stream.destroy();
    const run = (body: Uint8Array): void => {
      if (stream.destroyed) return;
      const wire = new WireRequest({
        method: headers[':method'] as string,
        target: headers[':path'] as string,
        headers: headers as Record<string, string>,
        rawHeaders,
        body,
        peer,
        upgradable: false,
      });
      stream.on('close', () => wire.abort());
      answer(handler(wire), log, (reply) => writeHttp2(stream, reply, wire));
    };
    if ((flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0) run(NO_BYTES);
    else readBody(stream, limit, run);
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
    handshakeTimeout: HEADERS_MS,
  });
  server.maxConnections = MAX_CONNECTIONS;
  server.on('secureConnection', (socket) => {
    socket.on('error', () => socket.destroy());
    const peer = describePeer(socket, frontProxyCa);
    if (!peer) return void socket.destroy();
    Object.defineProperty(socket, PEER, { value: peer });
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    if (socket.alpnProtocol === 'h2') http2.emit('connection', socket);
    else http1.emit('connection', socket);
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
    },
  };
}

/** A property, not a map by socket: HTTP/2 shows its socket through a proxy, which is another object. */
const PEER = Symbol('peer');

/** Who is at the far end, as it was seen when the handshake was over; undefined when it was not: then nobody is served. */
const peerOf = (socket: object): Peer | undefined => (socket as { readonly [PEER]?: Peer })[PEER];

/**
 * Read once, when the handshake is over. A connection that has been reset has no address any more (undefined, or empty):
 * that is a connection to drop, and says nothing of who called.
 */
function describePeer(socket: TLSSocket, frontProxyCa: X509Certificate | undefined): Peer | undefined {
  const address = socket.remoteAddress ?? '';
  if (address === '') return undefined;
  const certificate = socket.getPeerX509Certificate?.();
  if (!certificate) return { address };
  return { address, certificate: describeCertificate(certificate, { verified: socket.authorized, frontProxyCa }) };
}

function describeCertificate(
  certificate: X509Certificate,
  { verified, frontProxyCa }: { readonly verified: boolean; readonly frontProxyCa: X509Certificate | undefined },
): NonNullable<Peer['certificate']> {
  // Node prints one RDN attribute a line; a subject may hold several O.
  const lines = (certificate.subject ?? '').split('\n');
  const values = (key: string): string[] =>
    lines.filter((l) => l.startsWith(`${key}=`)).map((l) => l.slice(key.length + 1));
  return {
    verified,
    commonName: values('CN')[0] ?? '',
    organizations: values('O'),
    fingerprint: createHash('sha256').update(certificate.raw).digest('hex'),
    notAfter: Date.parse(certificate.validTo),
    ...(frontProxyCa && leadsTo(certificate, frontProxyCa) && { authority: 'front-proxy' as const }),
  };
}

/** Longest chain looked at. */
const MAX_CHAIN = 8;

/** Whether a certificate was issued by that authority, itself or through others it sent along. */
function leadsTo(certificate: X509Certificate, authority: X509Certificate): boolean {
  let at: X509Certificate | undefined = certificate;
  for (let depth = 0; at && depth < MAX_CHAIN; depth++) {
    if (at.checkIssued(authority) && at.verify(authority.publicKey)) return true;
    const { issuerCertificate }: X509Certificate = at;
    at = issuerCertificate?.fingerprint256 === at.fingerprint256 ? undefined : issuerCertificate;
  }
  return false;
}

function readBody(source: IncomingMessage | ServerHttp2Stream, limit: number, done: (body: Uint8Array) => void): void {
  const chunks: Buffer[] = [];
  let size = 0;
  let finished = false;
  const finish = (body: Uint8Array): void => {
    if (finished) return;
    finished = true;
    done(body);
  };
  source.on('data', (chunk: Buffer) => {
    if (finished) return;
    chunks.push(chunk);
    size += chunk.length;
    if (size > limit) {
      finish(Buffer.concat(chunks).subarray(0, limit + 1));
      chunks.length = 0;
    }
  });
  source.on('end', () => finish(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)));
  source.on('error', () => {
    finished = true;
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

function writeHttp1(request: IncomingMessage, response: ServerResponse, reply: ApiResponse, wire: WireRequest): void {
  if (response.destroyed || response.headersSent) return;
  // A body cut short must not be read on as the next request.
  if (!request.complete) response.shouldKeepAlive = false;
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
