/**
 * Pages of foreign origins. A browser shows the user's client certificate to this server whatever page asks, and a
 * WebSocket or a plain POST goes out without asking this server first: so what changes or opens something, comes from a
 * page of another origin and rests on a certificate alone is refused. A page that brings a token of its own is no
 * forgery. Programs send no Origin, but for WebSocket clients: some make one of the address they call (Python's, with
 * `http:` for any port), some send any (Go's libraries ask their user for one; upstream's own tests, `http://localhost`).
 */
import { ApiError } from '@coracle/apimachinery/meta/status';
import { type ApiRequest, type ApiResponse, NO_BYTES } from '@coracle/runtime/http/seam';

const READS = new Set(['GET', 'HEAD', 'OPTIONS']);

/** Throws ApiError 403. `allowed`: the origin is one of those whose pages may call. */
export function refuseForeignPage(
  { headers, method, upgradable, peer }: Pick<ApiRequest, 'headers' | 'method' | 'upgradable' | 'peer'>,
  { allowed }: { readonly allowed: boolean },
): void {
  const { origin } = headers;
  if (origin === undefined || allowed || !peer.certificate) return;
  if (!upgradable && READS.has(method)) return;
  if (upgradable && namesProgram(headers)) return;
  // A browser always says who it is, and a page cannot make it be silent without asking this server first.
  const fromProgram = headers['user-agent'] === undefined;
  if (isOwn(origin, headers['host'] ?? headers[':authority'] ?? '', { fromProgram })) return;
  throw new ApiError({
    code: 403,
    reason: 'Forbidden',
    message: `a page at ${JSON.stringify(origin.slice(0, 200))} may not use your client certificate`,
    details: {},
  });
}

/**
 * A WebSocket client that says it is no browser. Every browser that has WebSockets begins its name so, for the sake of old
 * pages, and no page can change the name in a handshake, nor take away what tells the server how a page asks.
 */
function namesProgram(headers: ApiRequest['headers']): boolean {
  const agent = headers['user-agent'] ?? '';
  return (
    agent !== '' && !/mozilla|opera/i.test(agent) && !Object.keys(headers).some((name) => name.startsWith('sec-fetch-'))
  );
}

function isOwn(origin: string, host: string, { fromProgram }: { readonly fromProgram: boolean }): boolean {
  try {
    const { protocol, host: of } = new URL(origin);
    if (protocol !== 'https:' && !(protocol === 'http:' && fromProgram)) return false;
    return host !== '' && of === new URL(`${protocol}//${host}`).host;
  } catch {
    return false; // `null`: a sandboxed frame or a file
  }
}

const METHODS = 'POST, GET, OPTIONS, PUT, DELETE, PATCH';
const HEADERS =
  'Content-Type, Content-Length, Accept-Encoding, X-CSRF-Token, Authorization, X-Requested-With, If-Modified-Since';

/** What a page of an allowed origin may do (apiserver's `--cors-allowed-origins`); undefined for requests that say no such origin. */
export type CorsPolicy = (request: ApiRequest) => Readonly<Record<string, string>> | undefined;

/** A policy that allows origins which match one of the regular expressions. Throws SyntaxError when one does not parse. */
export function createCorsPolicy(allowedOrigins: readonly string[]): CorsPolicy {
  const patterns = allowedOrigins.map((pattern) => new RegExp(pattern));
  return ({ headers }) => {
    const { origin } = headers;
    if (origin === undefined || !patterns.some((pattern) => pattern.test(origin))) return undefined;
    return {
      'access-control-allow-origin': origin,
      'access-control-allow-methods': METHODS,
      'access-control-allow-headers': HEADERS,
      'access-control-expose-headers': 'Date',
      'access-control-allow-credentials': 'true',
    };
  };
}

/** The browser's question before a request, answered before anybody is asked who it is. */
export const preflightAnswer = (): ApiResponse => ({ status: 204, headers: {}, body: NO_BYTES });
