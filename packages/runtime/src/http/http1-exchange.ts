/**
 * Requests over HTTP/1.1 with kept connections: for far ends that speak nothing newer, which many webhook servers do
 * not. Responses stream; a connection is free again when its body was read to the end. Also upgrades to anything that is
 * no WebSocket: such a connection is the caller's from then on.
 */
import type { ClientRequest, Agent as HttpAgent, IncomingMessage, RequestOptions } from 'node:http';
import { Agent, type AgentOptions, request as sendHttps } from 'node:https';
import type { Duplex } from 'node:stream';
import type { Clock } from '../clock/clock.ts';
import { byteSocket } from './byte-socket.ts';
import { joinSockets } from './join-sockets.ts';
import type { ApiRequest, ApiResponse } from './seam.ts';
import { collectBytes, streamBody } from './stream-body.ts';

/** Path with query, and what is sent as headers. */
export interface Http1Request {
  readonly target: string;
  readonly headers: Record<string, string | string[]>;
}

export type Http1Exchange = ReturnType<typeof createHttp1Exchange>;

/** Connections to one far end, watches included; further requests wait for a free one. */
const MAX_CONNECTIONS = 256;
/** Kept idle at most, and for how long. */
const MAX_IDLE = 8;
const IDLE_MS = 90_000;

/** A far end that has not agreed to an upgrade within this time will not. */
const UPGRADE_MS = 30_000;
/** A refused upgrade is answered with a Status; more than this is cut. */
export const MAX_REFUSAL_BYTES = 1024 * 1024;

export interface Http1ExchangeOptions {
  /** What to trust, show and check; nothing of it matters to an `http:` URL. */
  readonly tls: AgentOptions;
  readonly flatten: (headers: IncomingMessage['headers']) => Record<string, string>;
  readonly clock: Clock;
  /** False ends every connection with its answer: for far ends that may be gone at the next request. */
  readonly keepAlive: boolean;
}

/** Makes the pool; it connects with the first request. */
export function createHttp1Exchange(base: URL, options: Http1ExchangeOptions) {
  const { tls, flatten, clock, keepAlive } = options;
  const plain = base.protocol === 'http:';
  const pool = { keepAlive, maxSockets: MAX_CONNECTIONS, maxFreeSockets: MAX_IDLE, timeout: IDLE_MS };
  // Not by an import: it would load the whole of fetch with it (see tls-server).
  const http = plain ? process.getBuiltinModule('node:http') : undefined;
  const agentOf = (how: typeof pool): HttpAgent =>
    http ? new http.Agent(how) : new Agent({ ...tls, ...how, ALPNProtocols: ['http/1.1'] });
  const agent = agentOf(pool);
  /** What is upgraded gets a connection of its own, and never goes back to the others. */
  const single = agentOf({ ...pool, keepAlive: false });
  const send = (how: RequestOptions): ClientRequest => (http ? http.request(how) : sendHttps(how));
  const upgraded = new Set<Duplex>();
  const begin = (request: ApiRequest, how: Http1Request, more: Record<string, string | number>): ClientRequest =>
    send({
      agent: 'upgrade' in more ? single : agent,
      host: base.hostname.replace(/^\[|\]$/g, ''),
      port: base.port === '' ? (plain ? 80 : 443) : Number(base.port),
      method: request.method,
      path: how.target,
      headers: { ...how.headers, ...more },
    });
  return {
    /** Rejects with what the socket said, or the request's own reason when that was aborted. */
    send: (request: ApiRequest, how: Http1Request) =>
      new Promise<ApiResponse>((resolve, reject) => {
        request.signal.throwIfAborted();
        const outgoing = begin(request, how, { 'content-length': request.body.length });
        const abort = (): void => {
          reject(request.signal.reason as Error);
          outgoing.destroy();
        };
        request.signal.addEventListener('abort', abort, { once: true });
        const release = (): void => request.signal.removeEventListener('abort', abort);
        outgoing.once('response', (message) => {
          message.once('close', release);
          message.on('error', () => {});
          resolve({
            status: message.statusCode ?? 502,
            headers: flatten(message.headers),
            ...(message.headers['set-cookie'] && { cookies: message.headers['set-cookie'] }),
            body: streamBody(message, { stop: () => void message.destroy(), isWhole: () => message.complete }),
          });
        });
        outgoing.on('error', (error) => {
          release();
          reject(error);
        });
        outgoing.end(request.body);
      }),
    /** Asks for the request's `upgradeTo`. Whatever else than 101 with that very protocol is an ordinary answer, or rejects. */
    upgrade: (request: ApiRequest, how: Http1Request) =>
      new Promise<ApiResponse>((resolve, reject) => {
        request.signal.throwIfAborted();
        const asked = request.upgradeTo ?? '';
        const outgoing = begin(request, how, { connection: 'Upgrade', upgrade: asked });
        const abort = (): void => void outgoing.destroy(new Error('the request was given up'));
        const cancel = clock.schedule(UPGRADE_MS, () => outgoing.destroy(new Error('no answer to an upgrade')));
        request.signal.addEventListener('abort', abort, { once: true });
        const release = (): void => {
          cancel();
          request.signal.removeEventListener('abort', abort);
        };
        outgoing.once('upgrade', (message, socket, head) => {
          const protocol = message.headers.upgrade ?? '';
          // Nothing the client says may reach a far end that speaks something else now (CVE-2018-1002105).
          if (message.statusCode !== 101 || protocol.toLowerCase() !== asked.toLowerCase()) {
            release();
            socket.destroy();
            reject(new Error(`invalid upgrade response: ${JSON.stringify(protocol.slice(0, 64))}`));
            return;
          }
          cancel();
          upgraded.add(socket);
          request.signal.addEventListener('abort', () => socket.destroy(), { once: true });
          socket.once('close', () => {
            upgraded.delete(socket);
            release();
          });
          const far = byteSocket(socket, { protocol, head });
          resolve({
            status: 101,
            headers: flatten(message.headers),
            upgrade: { protocol, raw: true, accept: (near) => joinSockets(far, near, { clock }) },
          });
        });
        outgoing.once('response', (message) => {
          const parts = collectBytes(message, MAX_REFUSAL_BYTES, () => message.destroy());
          message.on('error', () => {});
          message.once('close', () => {
            release();
            outgoing.destroy();
            const { statusCode: status = 502, headers } = message;
            resolve({ status, headers: flatten(headers), body: Buffer.concat(parts) });
          });
        });
        outgoing.on('error', (error) => {
          release();
          reject(request.signal.aborted ? (request.signal.reason as Error) : error);
        });
        outgoing.end();
      }),
    /** Ends all connections; requests under way fail. */
    close(): void {
      agent.destroy();
      single.destroy();
      for (const socket of upgraded) socket.destroy();
    },
  };
}
