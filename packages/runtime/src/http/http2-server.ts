/**
 * HTTP/2 of the HTTPS front: a bare protocol server that never listens and is given its connections. It goes through the
 * stream event, not the compatibility layer, which costs a fifth of the throughput.
 */
import { constants, createServer, type Http2Server, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2';
import {
  answerRequest,
  type Front,
  IDLE_MS,
  MAX_HEADER_BYTES,
  partsOf,
  sinkOf,
  withCookies,
} from './answer-request.ts';
import { peerOf } from './describe-peer.ts';
import { declaredLength, IncomingBody } from './receive-body.ts';
import type { ApiResponse, Peer } from './seam.ts';
import { WireRequest } from './wire-request.ts';
import { sizeOf, writeParts } from './write-body.ts';

/** Upstream's limit of streams a connection. */
const MAX_STREAMS = 100;
/** What one connection may hold before new streams are refused; Node's own 10 is too little for concurrent lists. */
const MAX_SESSION_MB = 128;
/** A session without a stream ends after this long. */
const SESSION_IDLE_MS = IDLE_MS * 20;
/** What of one body comes before anybody has asked for it. */
const BODY_WINDOW = 64 * 1024 - 1;

/** Makes the server; `emit('connection', socket)` gives it one. Its open sessions stand in `sessions`. */
export function createHttp2Server(front: Front, sessions: Set<ServerHttp2Session>): Http2Server {
  const { handle, limit, budget, connectionOf, log } = front;
  const http2 = createServer({
    maxSessionMemory: MAX_SESSION_MB,
    settings: {
      maxConcurrentStreams: MAX_STREAMS,
      initialWindowSize: BODY_WINDOW,
      maxHeaderListSize: MAX_HEADER_BYTES,
    },
    maxHeaderListPairs: 1000,
  });
  const peers = new WeakMap<ServerHttp2Session, Peer>();
  http2.on('session', (session) => {
    const peer = peerOf(session.socket);
    if (!peer) return session.destroy();
    peers.set(session, peer);
    sessions.add(session);
    session.setTimeout(SESSION_IDLE_MS, () => session.close());
    session.on('close', () => sessions.delete(session));
    session.on('error', () => session.destroy());
  });
  http2.on('sessionError', () => {});
  http2.on('stream', (stream: ServerHttp2Stream, headers, flags, rawHeaders: string[]) => {
    stream.on('error', () => {});
    const { session } = stream;
    const peer = session && peers.get(session as ServerHttp2Session);
    if (!peer) return stream.destroy();
    const connection = session && connectionOf(session);
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
    });
    stream.on('close', () => {
      over?.();
      body?.release();
      wire.abort();
    });
    answerRequest(handle(wire), log, (reply) => {
      // What nobody asked for is not kept, however long the answer takes to be read.
      if (body && !stream.readableEnded) stream.resume();
      writeHttp2(stream, reply, wire);
      if (body && !stream.destroyed && !stream.readableEnded && typeof reply.body !== 'function')
        stream.close(constants.NGHTTP2_NO_ERROR);
    });
  });
  return http2;
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
