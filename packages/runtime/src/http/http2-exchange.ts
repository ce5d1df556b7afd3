/**
 * Requests over HTTP/2. One session while the far end's limit of streams allows (100 by default, and each watch holds
 * one), more when it does not; a session that broke or no longer answers pings is replaced by the next request.
 */
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  constants,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
} from 'node:http2';
import type { ConnectionOptions } from 'node:tls';
import type { Clock } from '../clock/clock.ts';
import type { ApiRequest, ApiResponse } from './seam.ts';
import { streamBody } from './stream-body.ts';

/** What to trust, show and check of a TLS connection. */
export type TlsChoice = Pick<
  ConnectionOptions,
  'secureContext' | 'servername' | 'rejectUnauthorized' | 'checkServerIdentity'
>;

/** How a far end is reached, whatever is spoken with it. */
export interface ExchangeOptions {
  readonly tls: TlsChoice;
  readonly flatten: (headers: IncomingHttpHeaders) => Record<string, string>;
  /** Says which request failed. */
  readonly explain: (error: Error, request: ApiRequest) => Error;
  readonly clock: Clock;
  /** A far end that has not answered by then is not there. */
  readonly connectTimeoutMs: number;
}

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

interface Session {
  readonly http2: ClientHttp2Session;
  streams: number;
  /** The far end takes no new streams on it. */
  retired: boolean;
}

/** Makes the exchange; it connects with the first request. */
export function createHttp2Exchange(origin: string, options: ExchangeOptions) {
  const { flatten, explain } = options;
  const sessions = new Set<Session>();

  const pick = (): Session => {
    let least: Session | undefined;
    for (const session of sessions) {
      if (session.retired || session.http2.closed || session.http2.destroyed) continue;
      const limit = session.http2.remoteSettings?.maxConcurrentStreams ?? DEFAULT_STREAMS;
      if (session.streams < Math.max(1, Math.min(limit, DEFAULT_STREAMS) - SPARE_STREAMS)) return session;
      if (!least || session.streams < least.streams) least = session;
    }
    return !least || sessions.size < MAX_SESSIONS ? openSession(origin, sessions, options) : least;
  };

  /** `target` is the path with its query. Rejects with what the stream said, or the request's own reason when that was aborted. */
  const send = async (request: ApiRequest, target: string, fields: OutgoingHttpHeaders): Promise<ApiResponse> => {
    const headers: OutgoingHttpHeaders = { ...fields };
    headers[constants.HTTP2_HEADER_METHOD] = request.method;
    headers[constants.HTTP2_HEADER_PATH] = target;
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
      stream.once('response', (received) => resolve(toResponse(stream, received, flatten)));
      stream.on('error', (error) => reject(explain(error, request)));
      stream.once('close', () => {
        request.signal.removeEventListener('abort', abort);
        session.streams--;
        if (session.streams === 0 && !session.http2.destroyed) session.http2.unref();
        reject(new Error(`Cannot read answer to ${request.method} ${request.path}: ${origin} closed the stream`));
      });
      if (request.body.length > 0) stream.end(request.body);
    });
  };

  return {
    send,
    /** Ends all sessions; requests under way fail. */
    close(): void {
      for (const { http2 } of sessions) http2.destroy();
      sessions.clear();
    },
  };
}

/** Opens a session; it stands in `sessions` until it breaks or closes. */
function openSession(origin: string, sessions: Set<Session>, options: ExchangeOptions): Session {
  const { tls, clock, connectTimeoutMs } = options;
  const http2 = connect(origin, { ...tls, settings: { enablePush: false, initialWindowSize: WINDOW_BYTES } });
  const session: Session = { http2, streams: 0, retired: false };
  sessions.add(session);
  const drop = (): void => {
    sessions.delete(session);
    stopPing();
  };
  const stopConnect = clock.schedule(connectTimeoutMs, () => {
    if (http2.connecting)
      http2.destroy(new Error(`Cannot connect to ${origin}: no answer in ${connectTimeoutMs / 1000} s`));
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
  const stopPing = keepAlive(session, clock, origin);
  return session;
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

function toResponse(
  stream: ClientHttp2Stream,
  received: IncomingHttpHeaders,
  flatten: ExchangeOptions['flatten'],
): ApiResponse {
  return {
    status: Number(received[constants.HTTP2_HEADER_STATUS]),
    headers: flatten(received),
    ...(received['set-cookie'] && { cookies: received['set-cookie'] }),
    body: streamBody(stream, {
      stop() {
        if (!stream.closed) stream.close(constants.NGHTTP2_CANCEL);
      },
      isWhole: () => stream.rstCode === constants.NGHTTP2_NO_ERROR,
    }),
  };
}
