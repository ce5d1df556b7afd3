/** Requests that are upgraded to a WebSocket: each over a connection of its own. */
import type { WebSocket } from 'ws';
import { MAX_REFUSAL_BYTES } from './http1-exchange.ts';
import type { ExchangeOptions } from './http2-exchange.ts';
import { joinSockets } from './join-sockets.ts';
import type { ApiRequest, ApiResponse } from './seam.ts';
import { collectBytes } from './stream-body.ts';
import { messageSocketOf } from './web-socket.ts';

/** One WebSocket message. What may wait unsent behind it is MAX_UNSENT_BYTES of `join-sockets.ts`. */
const MAX_MESSAGE_BYTES = 16 * 1024 * 1024;

/** Makes the upgrade; nothing is loaded or opened before the first request. */
export function createWebSocketUpgrade(options: ExchangeOptions) {
  const { flatten, explain, clock, connectTimeoutMs } = options;
  const sockets = new Set<WebSocket>();
  let closed = false;

  /** Asks `url` for one of the request's protocols; a refusal is an ordinary answer. */
  const send = async (
    request: ApiRequest,
    url: string,
    fields: Record<string, string | string[]>,
  ): Promise<ApiResponse> => {
    const headers = { ...fields };
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

    const socket = new library.WebSocket(url, protocols, {
      ...options.tls,
      headers,
      perMessageDeflate: false,
      maxPayload: MAX_MESSAGE_BYTES,
      handshakeTimeout: connectTimeoutMs,
    });
    sockets.add(socket);
    return new Promise<ApiResponse>((resolve, reject) => {
      const abort = (): void => socket.terminate();
      request.signal.addEventListener('abort', abort, { once: true });
      socket.on('close', () => {
        sockets.delete(socket);
        request.signal.removeEventListener('abort', abort);
      });
      socket.on('error', (error) => reject(request.signal.aborted ? request.signal.reason : explain(error, request)));
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
        const parts = collectBytes(response, MAX_REFUSAL_BYTES);
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

  return {
    send,
    /** Ends all sockets, and makes none any more. */
    close(): void {
      closed = true;
      for (const socket of sockets) socket.terminate();
      sockets.clear();
    },
  };
}
