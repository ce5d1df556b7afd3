/**
 * An ApiHandler over HTTPS: HTTP/2 for requests (HTTP/1.1 when configured so), HTTP/1.1 for what is upgraded to a WebSocket. One session while the far
 * end's limit of streams allows (100 by default, and each watch holds one), more when it does not; a session that broke
 * or no longer answers pings is replaced by the next request. Responses stream; nothing is retried here.
 */
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  constants,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
} from 'node:http2';
import { type SecureContextOptions, checkServerIdentity as verifyName } from 'node:tls';
import type { WebSocket } from 'ws';
import { type Clock, systemClock } from '../clock/clock.ts';
import { createHttp1Exchange, type Http1Exchange } from './http1-exchange.ts';
import { joinSockets } from './join-sockets.ts';
import type { ApiHandler, ApiRequest, ApiResponse, ByteSink, ByteStream } from './seam.ts';
import { messageSocketOf } from './web-socket.ts';

export interface HttpsTransportOptions {
  /** `https://host:port`, and a path prefix if the server lies behind one. */
  readonly server: string;
  /** PEM of the CAs to trust instead of the system's. */
  readonly ca?: string;
  /** PEM, leaf first; with `key` the client certificate. */
  readonly certificate?: string;
  /** PEM. */
  readonly key?: string;
  /** Bearer token, or where to get the newest. A request that carries its own is left alone. */
  readonly token?: string | (() => Promise<string>);
  /** The name to check the server's certificate against, if not the URL's host. */
  readonly serverName?: string;
  /** Accepts any certificate. For kubeconfig files that say so; never a default. */
  readonly insecureSkipTlsVerify?: boolean;
  /** Requests over HTTP/1.1 instead: for far ends that may speak nothing newer. */
  readonly http1?: boolean;
  /** Lets `server` begin with `http://`, which then means HTTP/1.1 without TLS. For what is on this host alone. */
  readonly plain?: boolean;
  /** False ends an HTTP/1.1 connection with its answer. */
  readonly keepAlive?: boolean;
  readonly clock?: Clock;
}

export type HttpsTransport = ApiHandler & {
  /** Ends all sessions; requests under way fail. */
  close(): void;
};

/** Streams kept free on a session for short requests, so that watches do not take them all. */
const SPARE_STREAMS = 10;
/** Sessions to one server at most: enough for a thousand watches. */
const MAX_SESSIONS = 16;
/** What a server allows until its settings say otherwise. */
const DEFAULT_STREAMS = 100;
const WINDOW_BYTES = 1024 * 1024;
/** A session with streams is pinged this often; one ping without answer ends it. */
const PING_MS = 30_000;
const PING_TIMEOUT_MS = 15_000;
const CONNECT_TIMEOUT_MS = 30_000;
/** A refused upgrade is answered with a Status; more than this is cut. */
const MAX_REFUSAL_BYTES = 1024 * 1024;
/** One WebSocket message. What may wait unsent behind it is MAX_UNSENT_BYTES of `join-sockets.ts`. */
const MAX_MESSAGE_BYTES = 16 * 1024 * 1024;

/** Of the connection a request came over, not of the one it leaves by. */
const HOP_BY_HOP = ['connection', 'transfer-encoding', 'upgrade', 'keep-alive', 'content-length'];

interface Session {
  readonly http2: ClientHttp2Session;
  streams: number;
  /** The far end takes no new streams on it. */
  retired: boolean;
}

/** Makes a transport; it connects with the first request. Throws TypeError when `server` is no https URL. */
export function createHttpsTransport(options: HttpsTransportOptions): HttpsTransport {
  const { ca, certificate, key, token, serverName, insecureSkipTlsVerify, clock = systemClock } = options;
  const base = new URL(options.server);
  const plain = options.plain === true && base.protocol === 'http:';
  if (base.protocol !== 'https:' && !plain)
    throw new TypeError(`Cannot use server "${options.server}": the URL must begin with https://`);
  const prefix = base.pathname.replace(/\/+$/, '');
  const tls: SecureContextOptions & { servername?: string; rejectUnauthorized?: boolean } = {
    ...(ca !== undefined && { ca }),
    ...(certificate !== undefined && { cert: certificate }),
    ...(key !== undefined && { key }),
    ...(serverName !== undefined && { servername: serverName }),
    ...(insecureSkipTlsVerify && { rejectUnauthorized: false }),
  };
  const nameCheck =
    serverName === undefined
      ? {}
      : {
          checkServerIdentity: (_host: string, peer: Parameters<typeof verifyName>[1]) => verifyName(serverName, peer),
        };
  const sessions = new Set<Session>();
  const sockets = new Set<WebSocket>();
  let closed = false;

  const open = (): Session => {
    const http2 = connect(base.origin, {
      ...tls,
      ...nameCheck,
      settings: { enablePush: false, initialWindowSize: WINDOW_BYTES },
    });
    const session: Session = { http2, streams: 0, retired: false };
    sessions.add(session);
    const drop = (): void => {
      sessions.delete(session);
      stopPing();
    };
    const stopConnect = clock.schedule(CONNECT_TIMEOUT_MS, () => {
      if (http2.connecting)
        http2.destroy(new Error(`Cannot connect to ${base.origin}: no answer in ${CONNECT_TIMEOUT_MS / 1000} s`));
    });
    http2.once('connect', () => {
      stopConnect();
      // Else one session could never take in more than 64 KiB a round trip, all its streams together.
      http2.setLocalWindowSize(WINDOW_BYTES * 4);
      if (session.streams === 0) http2.unref();
    });
    // Errors reach the requests through their streams; without a listener they would end the process.
    http2.on('error', drop);
    http2.on('goaway', () => {
      session.retired = true;
    });
    http2.on('close', () => {
      stopConnect();
      drop();
    });
    const stopPing = keepAlive(session, clock, base.origin);
    return session;
  };

  const pick = (): Session => {
    let least: Session | undefined;
    for (const session of sessions) {
      if (session.retired || session.http2.closed || session.http2.destroyed) continue;
      const limit = session.http2.remoteSettings?.maxConcurrentStreams ?? DEFAULT_STREAMS;
      if (session.streams < Math.max(1, Math.min(limit, DEFAULT_STREAMS) - SPARE_STREAMS)) return session;
      if (!least || session.streams < least.streams) least = session;
    }
    return !least || sessions.size < MAX_SESSIONS ? open() : least;
  };

  const headersOf = async (request: ApiRequest): Promise<Record<string, string | string[]>> => {
    const headers = withRepeated(request);
    if (token !== undefined && headers['authorization'] === undefined) {
      headers['authorization'] = `Bearer ${typeof token === 'string' ? token : await token()}`;
    }
    return headers;
  };

  const target = (request: ApiRequest): string =>
    `${prefix}${request.path}${request.query === '' ? '' : `?${request.query}`}`;

  let http1: Http1Exchange | undefined;
  const overHttp1 = async (request: ApiRequest): Promise<ApiResponse> => {
    const headers = await headersOf(request);
    for (const name of HOP_BY_HOP) delete headers[name];
    // Known to HTTP/2 under another name; of a request that came by it there may be none.
    if (!options.http1) delete headers['host'];
    if (serverName !== undefined) headers['host'] ??= serverName;
    if (closed) throw new Error(`Cannot send ${request.method} ${request.path}: the transport is closed`);
    const { keepAlive = true } = options;
    http1 ??= createHttp1Exchange(base, { tls: { ...tls, ...nameCheck }, flatten, clock, keepAlive });
    const how = { target: target(request), headers };
    const answer = request.upgradeTo === undefined ? http1.send(request, how) : http1.upgrade(request, how);
    return answer.catch((error) => {
      throw explain(error, request, base.origin);
    });
  };

  const exchange = async (request: ApiRequest): Promise<ApiResponse> => {
    const headers: OutgoingHttpHeaders = { ...(await headersOf(request)) };
    // Illegal in HTTP/2, or said by the pseudo-headers.
    for (const name of ['host', ...HOP_BY_HOP]) delete headers[name];
    headers[constants.HTTP2_HEADER_METHOD] = request.method;
    headers[constants.HTTP2_HEADER_PATH] = target(request);
    if (request.body.length > 0) headers['content-length'] = request.body.length;
    request.signal.throwIfAborted();

    const session = pick();
    const stream = session.http2.request(headers, { endStream: request.body.length === 0 });
    session.streams++;
    // A session with work keeps the process alive, an idle one does not.
    if (session.streams === 1 && !session.http2.connecting) session.http2.ref();
    return new Promise<ApiResponse>((resolve, reject) => {
      const abort = (): void => {
        reject(request.signal.reason as Error);
        stream.close(constants.NGHTTP2_CANCEL);
      };
      request.signal.addEventListener('abort', abort, { once: true });
      stream.once('response', (received) => resolve(toResponse(stream, received)));
      stream.on('error', (error) => reject(explain(error, request, base.origin)));
      stream.once('close', () => {
        request.signal.removeEventListener('abort', abort);
        session.streams--;
        if (session.streams === 0 && !session.http2.destroyed) session.http2.unref();
        reject(new Error(`Cannot read answer to ${request.method} ${request.path}: ${base.origin} closed the stream`));
      });
      if (request.body.length > 0) stream.end(request.body);
    });
  };

  const upgrade = async (request: ApiRequest): Promise<ApiResponse> => {
    const headers = await headersOf(request);
    const protocols = (request.headers['sec-websocket-protocol'] ?? '')
      .split(',')
      .map((one) => one.trim())
      .filter((one) => one !== '');
    for (const name of ['connection', 'host', 'upgrade', 'content-length', 'transfer-encoding']) delete headers[name];
    for (const name of Object.keys(headers)) if (name.startsWith('sec-websocket-')) delete headers[name];
    // Loaded with the first upgrade: most transports never see one.
    const library = await import('ws');
    request.signal.throwIfAborted();
    if (closed) throw new Error(`Cannot send ${request.method} ${request.path}: the transport is closed`);

    const url = `${plain ? 'ws' : 'wss'}://${base.host}${target(request)}`;
    const socket = new library.WebSocket(url, protocols, {
      ...tls,
      ...nameCheck,
      headers,
      perMessageDeflate: false,
      maxPayload: MAX_MESSAGE_BYTES,
      handshakeTimeout: CONNECT_TIMEOUT_MS,
    });
    sockets.add(socket);
    return new Promise<ApiResponse>((resolve, reject) => {
      const abort = (): void => socket.terminate();
      request.signal.addEventListener('abort', abort, { once: true });
      socket.on('close', () => {
        sockets.delete(socket);
        request.signal.removeEventListener('abort', abort);
      });
      socket.on('error', (error) =>
        reject(request.signal.aborted ? request.signal.reason : explain(error, request, base.origin)),
      );
      socket.once('open', () => {
        // Nothing may arrive before the caller listens.
        socket.pause();
        resolve({
          status: 101,
          headers: {},
          upgrade: {
            protocol: socket.protocol,
            accept(near) {
              joinSockets(messageSocketOf(socket, socket.protocol), near, { clock });
              if (socket.readyState === socket.OPEN) socket.resume();
            },
          },
        });
      });
      socket.once('unexpected-response', (_request, response) => {
        const parts: Buffer[] = [];
        let size = 0;
        response.on('data', (chunk: Buffer) => {
          size += chunk.length;
          if (size <= MAX_REFUSAL_BYTES) parts.push(chunk);
        });
        response.on('error', reject);
        response.on('end', () => {
          resolve({
            status: response.statusCode ?? 502,
            headers: flatten(response.headers),
            body: Buffer.concat(parts),
          });
          socket.terminate();
        });
      });
    });
  };

  const handler = (request: ApiRequest): Promise<ApiResponse> => {
    if (closed)
      return Promise.reject(new Error(`Cannot send ${request.method} ${request.path}: the transport is closed`));
    if (request.upgradable) return upgrade(request);
    return options.http1 || plain || request.upgradeTo !== undefined ? overHttp1(request) : exchange(request);
  };
  return Object.assign(handler, {
    close() {
      closed = true;
      http1?.close();
      for (const { http2 } of sessions) http2.destroy();
      for (const socket of sockets) socket.terminate();
      sessions.clear();
      sockets.clear();
    },
  });
}

/** Pings a session while it has streams: a connection that died without a word would leave its watches waiting for ever. */
function keepAlive(session: Session, clock: Clock, origin: string): () => void {
  const { http2 } = session;
  let cancel: () => void = () => {};
  const plan = (): void => {
    cancel = clock.schedule(PING_MS, () => {
      if (http2.destroyed) return;
      if (session.streams === 0 || http2.connecting) return plan();
      cancel = clock.schedule(PING_TIMEOUT_MS, () =>
        http2.destroy(new Error(`Connection to ${origin} lost: no answer to a ping`)),
      );
      http2.ping((error) => {
        cancel();
        if (!error) plan();
      });
    });
  };
  plan();
  return () => cancel();
}

function toResponse(stream: ClientHttp2Stream, received: IncomingHttpHeaders): ApiResponse {
  return {
    status: Number(received[constants.HTTP2_HEADER_STATUS]),
    headers: flatten(received),
    ...(received['set-cookie'] && { cookies: received['set-cookie'] }),
    body: streamBody(stream),
  };
}

/** Moves a body into a sink; reading pauses while the sink is behind, so a slow reader slows the server down. */
function streamBody(stream: ClientHttp2Stream): ByteStream {
  return (sink: ByteSink) => {
    const stop = (): void => {
      if (!stream.closed) stream.close(constants.NGHTTP2_CANCEL);
    };
    sink.signal.addEventListener('abort', stop, { once: true });
    stream.on('data', (chunk: Buffer) => {
      if (sink.write(chunk)) return;
      stream.pause();
      void sink.drained().then(() => stream.resume());
    });
    stream.once('end', () => sink.end());
    stream.once('close', () => {
      sink.signal.removeEventListener('abort', stop);
      if (stream.rstCode === constants.NGHTTP2_NO_ERROR || !sink.fail) sink.end();
      else sink.fail();
    });
    if (sink.signal.aborted) stop();
  };
}

/**
 * The headers, those that came more than once apart again: what a reader splits at commas (X-Remote-Group) may hold
 * some. Only as far as `headers` still says the same: whoever passes a request on may have taken some out.
 */
function withRepeated({ headers, rawHeaders }: ApiRequest): Record<string, string | string[]> {
  const out: Record<string, string | string[]> = { ...headers };
  if (!rawHeaders) return out;
  const values = new Map<string, string[]>();
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!.toLowerCase();
    const known = values.get(name);
    if (known) known.push(rawHeaders[i + 1]!);
    else values.set(name, [rawHeaders[i + 1]!]);
  }
  for (const [name, list] of values) if (list.length > 1 && headers[name] === list.join(', ')) out[name] = list;
  return out;
}

function flatten(received: IncomingHttpHeaders): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(received)) {
    if (value === undefined || name.startsWith(':') || name === 'set-cookie') continue;
    headers[name] = Array.isArray(value) ? value.join(', ') : String(value);
  }
  return headers;
}

/** Says which request failed; causes such as a refused connection keep their code. */
function explain(error: Error, request: ApiRequest, origin: string): Error {
  if (request.signal.aborted) return request.signal.reason as Error;
  return new Error(`Cannot send ${request.method} ${request.path} to ${origin}: ${error.message}`, { cause: error });
}
