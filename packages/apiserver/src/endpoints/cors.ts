/** Cross-origin requests of browsers: off unless origins are named (apiserver's `--cors-allowed-origins`). */
import type { ApiRequest, ApiResponse } from '@coracle/runtime/http/seam';
import { NO_BYTES } from '@coracle/runtime/http/seam';

const METHODS = 'POST, GET, OPTIONS, PUT, DELETE, PATCH';
const HEADERS =
  'Content-Type, Content-Length, Accept-Encoding, X-CSRF-Token, Authorization, X-Requested-With, If-Modified-Since';

/** What a page of an allowed origin may do; undefined for requests that say no such origin. */
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
