/**
 * Upgrades of HTTP/1.1 connections: WebSockets, and protocols whose socket carries bytes (SPDY). Nothing of the client
 * goes on behind a request that was not granted.
 */
import type { IncomingMessage, Server } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { WebSocketServer } from 'ws';
import { answerRequest, type Front } from './answer-request.ts';
import { byteSocket } from './byte-socket.ts';
import { peerOf } from './describe-peer.ts';
import { HOP_BY_HOP } from './hop-by-hop.ts';
import { type ApiHandler, type ApiResponse, NO_BYTES } from './seam.ts';
import { messageSocketOf } from './web-socket.ts';
import { WireRequest } from './wire-request.ts';

/** One WebSocket message; consoles and port forwards send far less. */
const MAX_MESSAGE = 4 * 1024 * 1024;
/** One protocol with its version (RFC 9110, 7.8), of a sensible length. */
const UPGRADE_TOKEN = /^[\w!#$%&'*+.^`|~-]{1,64}(?:\/[\w!#$%&'*+.^`|~-]{1,64})?$/;

/** Answers the upgrades that clients of this server ask for. The WebSocket library is loaded with the first that needs it. */
export function serveUpgrades(http1: Server, { connectionOf, log }: Front, handler: ApiHandler): void {
  const chosenProtocol = new WeakMap<IncomingMessage, string>();
  let websockets: Promise<WebSocketServer> | undefined;
  const webSocketServer = async (): Promise<WebSocketServer> => {
    const library = await import('ws');
    const server = new library.WebSocketServer({
      noServer: true,
      perMessageDeflate: false,
      maxPayload: MAX_MESSAGE,
      clientTracking: false,
    });
    server.on('headers', (lines: string[], request: IncomingMessage) => {
      const protocol = chosenProtocol.get(request);
      if (protocol !== undefined) lines.push(`Sec-WebSocket-Protocol: ${protocol}`);
    });
    return server;
  };

  http1.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    if (request.httpVersionMajor !== 1) return refuseVersion(socket);
    const peer = peerOf(socket);
    if (!peer) return void socket.destroy();
    const connection = connectionOf(socket);
    const over = connection?.begin();
    const asked = request.headers.upgrade ?? '';
    const upgradable = /websocket/i.test(asked);
    const wire = new WireRequest({
      method: request.method ?? 'GET',
      target: request.url ?? '/',
      headers: request.headers as Record<string, string>,
      rawHeaders: request.rawHeaders,
      identify: (owner) => connection?.identify(owner),
      peer,
      upgradable,
      upgradeTo: !upgradable && UPGRADE_TOKEN.test(asked) ? asked : undefined,
    });
    socket.on('error', () => wire.abort());
    socket.on('close', () => {
      over?.();
      wire.abort();
    });
    answerRequest(handler(wire), log, (reply) => {
      if (reply.upgrade?.raw && wire.upgradeTo !== undefined) {
        if (socket.destroyed) return;
        const { protocol, accept } = reply.upgrade;
        socket.write(switchingHead(protocol, reply.headers));
        return accept(byteSocket(socket, { protocol, head }));
      }
      if (reply.upgrade && !reply.upgrade.raw && wire.upgradable) {
        const { protocol, accept } = reply.upgrade;
        if (protocol !== '') chosenProtocol.set(request, protocol);
        websockets ??= webSocketServer();
        // What the far end sends meanwhile stays in the network: nobody reads the socket yet.
        return websockets.then((server) => {
          if (socket.destroyed) return;
          // The library takes RFC 6455's tokens only; Kubernetes names a protocol with a slash in it. Our handler has chosen.
          delete request.headers['sec-websocket-protocol'];
          server.handleUpgrade(request, socket, head, (connection) => accept(messageSocketOf(connection, protocol)));
        });
      }
      writeRefusal(socket, reply);
    });
  });
}

/** An answer may have come from another server, with a length and a connection of its own. */
const headerLines = (headers: ApiResponse['headers']): string[] =>
  Object.entries(headers)
    .filter(([name]) => !HOP_BY_HOP.has(name) && name !== 'content-length')
    .map(([name, value]) => `${name}: ${value}`);

/** The answer behind which the connection speaks `protocol`. */
function switchingHead(protocol: string, headers: ApiResponse['headers']): string {
  const lines = [
    'HTTP/1.1 101 Switching Protocols',
    'Connection: Upgrade',
    `Upgrade: ${protocol}`,
    ...headerLines(headers),
  ];
  return `${lines.join('\r\n')}\r\n\r\n`;
}

/** A request line of another version than HTTP/1 speaks is answered in words of it, and nothing behind it is read. */
export const refuseVersion = (socket: Duplex): void =>
  writeRefusal(socket, {
    status: 505,
    headers: { 'content-type': 'text/plain; charset=utf-8' },
    body: new TextEncoder().encode('505 HTTP Version Not Supported: unsupported protocol version'),
  });

/** An upgrade that is not granted gets an ordinary response and the connection ends: no byte goes on behind it. */
export function writeRefusal(socket: Duplex, reply: ApiResponse): void {
  const status = reply.status === 101 ? 400 : reply.status;
  const body =
    reply.body instanceof Uint8Array ? reply.body : Array.isArray(reply.body) ? Buffer.concat(reply.body) : NO_BYTES;
  // Not by an import: see http1-server.
  const { STATUS_CODES } = process.getBuiltinModule('node:http');
  const lines = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'Error'}`,
    `Content-Length: ${body.length}`,
    'Connection: close',
    ...headerLines(reply.headers),
  ];
  socket.end(Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`), body]));
  (socket as Socket).destroySoon?.();
}
