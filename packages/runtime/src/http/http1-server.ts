/** HTTP/1.1 of the HTTPS front: a bare protocol server that never listens and is given its connections. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
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
import { declaredLength, IncomingBody, leaveRest } from './receive-body.ts';
import type { ApiHandler, ApiResponse } from './seam.ts';
import { refuseVersion, serveUpgrades, writeRefusal } from './upgrades.ts';
import { WireRequest } from './wire-request.ts';
import { BLOCK_BYTES, sizeOf, writeParts } from './write-body.ts';

/** Upstream's limit. */
const HEADERS_MS = 32_000;
/** A whole request must have arrived within this time; streams and upgrades go on behind it. */
const REQUEST_MS = 60_000;

/** Makes the server; `emit('connection', socket)` gives it one. Upgrades go to `upgradeHandler`: they have no body. */
export function createHttp1Server(front: Front, upgradeHandler: ApiHandler): Server {
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
  http1.on('request', (request, response) => serveHttp1(front, request, response, false));
  http1.on('checkContinue', (request, response) => serveHttp1(front, request, response, true));
  serveUpgrades(http1, front, upgradeHandler);
  http1.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => {
    const status = error.code === 'HPE_HEADER_OVERFLOW' ? 431 : error.code === 'ERR_HTTP_REQUEST_TIMEOUT' ? 408 : 400;
    // Behind a response that has begun no error can be reported any more.
    const busy = (socket as Duplex & { _httpMessage?: unknown })._httpMessage !== undefined;
    if (socket.writable && !busy) writeRefusal(socket, { status, headers: {} });
    else socket.destroy();
  });
  return http1;
}

/** Answers one request; `waits`: its client sends the body only after a 100 Continue. */
function serveHttp1(front: Front, request: IncomingMessage, response: ServerResponse, waits: boolean): void {
  const { limit, budget } = front;
  if (request.httpVersionMajor !== 1) return void refuseVersion(request.socket);
  const peer = peerOf(request.socket);
  if (!peer) return void request.socket.destroy();
  const connection = front.connectionOf(request.socket);
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
  });
  response.on('close', () => {
    over?.();
    body?.release();
    if (!response.writableFinished) wire.abort();
    if (front.closing) request.socket.destroySoon();
  });
  answerRequest(front.handle(wire), front.log, (reply) => {
    // A body cut short must not be read on as the next request.
    if (body) leaveRest(request, response, { limit, waits });
    writeHttp1(response, reply, wire);
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
