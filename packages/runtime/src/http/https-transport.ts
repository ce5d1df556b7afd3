/**
 * An ApiHandler over HTTPS: HTTP/2 for requests (HTTP/1.1 when configured so), HTTP/1.1 for what is upgraded to a
 * WebSocket. Responses stream; nothing is retried here.
 */
import type { IncomingHttpHeaders } from 'node:http2';
import { createSecureContext, checkServerIdentity as verifyName } from 'node:tls';
import { type Clock, systemClock } from '../clock/clock.ts';
import { getOrInsert } from '../collections/get-or-insert.ts';
import { createHttp1Exchange, type Http1Exchange } from './http1-exchange.ts';
import { createHttp2Exchange, type TlsChoice } from './http2-exchange.ts';
import type { ApiHandler, ApiRequest, ApiResponse } from './seam.ts';
import { createWebSocketUpgrade } from './web-socket-upgrade.ts';

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

const CONNECT_TIMEOUT_MS = 30_000;
/** Of the connection a request came over, not of the one it leaves by. */
const HOP_BY_HOP = ['connection', 'transfer-encoding', 'upgrade', 'keep-alive', 'content-length'];

/** Makes a transport; it connects with the first request. Throws TypeError when `server` is no https URL. */
export function createHttpsTransport(options: HttpsTransportOptions): HttpsTransport {
  const { token, serverName, clock = systemClock } = options;
  const base = new URL(options.server);
  const plain = options.plain === true && base.protocol === 'http:';
  if (base.protocol !== 'https:' && !plain)
    throw new TypeError(`Cannot use server "${options.server}": the URL must begin with https://`);
  const prefix = base.pathname.replace(/\/+$/, '');
  const explain = (error: Error, request: ApiRequest): Error => explainFailure(error, request, base.origin);
  let tls: TlsChoice | undefined;
  const how = {
    // Reading the certificates takes longer than a handshake with them: once, and at the first request, which can fail.
    get tls() {
      tls ??= plain ? {} : tlsOptionsOf(options);
      return tls;
    },
    flatten,
    explain,
    clock,
    connectTimeoutMs: CONNECT_TIMEOUT_MS,
  };
  const http2 = createHttp2Exchange(base.origin, how);
  const webSockets = createWebSocketUpgrade(how);
  let closed = false;

  const headersOf = async (request: ApiRequest): Promise<Record<string, string | string[]>> => {
    const headers = withRepeated(request);
    if (token !== undefined) headers['authorization'] ??= `Bearer ${typeof token === 'string' ? token : await token()}`;
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
    http1 ??= createHttp1Exchange(base, { tls: how.tls, flatten, clock, keepAlive });
    const what = { target: target(request), headers };
    const answer = request.upgradeTo === undefined ? http1.send(request, what) : http1.upgrade(request, what);
    return answer.catch((error) => {
      throw explain(error, request);
    });
  };

  const overHttp2 = async (request: ApiRequest): Promise<ApiResponse> => {
    const headers = await headersOf(request);
    // Illegal in HTTP/2, or said by the pseudo-headers.
    for (const name of ['host', ...HOP_BY_HOP]) delete headers[name];
    return http2.send(request, target(request), headers);
  };

  const upgrade = async (request: ApiRequest): Promise<ApiResponse> => {
    const url = `${plain ? 'ws' : 'wss'}://${base.host}${target(request)}`;
    return webSockets.send(request, url, await headersOf(request));
  };

  const handler = (request: ApiRequest): Promise<ApiResponse> => {
    if (closed)
      return Promise.reject(new Error(`Cannot send ${request.method} ${request.path}: the transport is closed`));
    if (request.upgradable) return upgrade(request);
    return options.http1 || plain || request.upgradeTo !== undefined ? overHttp1(request) : overHttp2(request);
  };
  return Object.assign(handler, {
    close() {
      closed = true;
      http1?.close();
      http2.close();
      webSockets.close();
    },
  });
}

/** What to trust, show and check of a TLS connection. */
function tlsOptionsOf(options: HttpsTransportOptions): TlsChoice {
  const { ca, certificate, key, serverName, insecureSkipTlsVerify } = options;
  return {
    secureContext: createSecureContext({
      ...(ca !== undefined && { ca }),
      ...(certificate !== undefined && { cert: certificate }),
      ...(key !== undefined && { key }),
    }),
    ...(serverName !== undefined && { servername: serverName }),
    ...(insecureSkipTlsVerify && { rejectUnauthorized: false }),
    ...(serverName !== undefined && {
      checkServerIdentity: (_host: string, peer: Parameters<typeof verifyName>[1]) => verifyName(serverName, peer),
    }),
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
  for (let i = 0; i + 1 < rawHeaders.length; i += 2)
    getOrInsert(values, rawHeaders[i]!.toLowerCase(), () => []).push(rawHeaders[i + 1]!);
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
function explainFailure(error: Error, request: ApiRequest, origin: string): Error {
  if (request.signal.aborted) return request.signal.reason as Error;
  // Of a session that came to nothing a stream says no more than that it is gone; the session says why.
  const cancelled = (error as NodeJS.ErrnoException).code === 'ERR_HTTP2_STREAM_CANCEL';
  const known = cancelled && error.cause instanceof Error ? error.cause : error;
  return new Error(`Cannot send ${request.method} ${request.path} to ${origin}: ${known.message}`, { cause: error });
}
