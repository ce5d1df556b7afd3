/** What client-go says of an answer that is no success (NewGenericServerResponse). */
import { goQuote } from '@coracle/apimachinery/meta/go-text';
import type { ApiResponse } from '@coracle/runtime/http/seam';

/** As much of a text as is repeated. */
const MAX_SAID = 2048;

const UNKNOWN = 'unknown';

const TEXTS: Readonly<Record<number, string>> = {
  400: 'the server rejected our request for an unknown reason',
  401: 'the server has asked for the client to provide credentials',
  404: 'the server could not find the requested resource',
  405: 'the server does not allow this method on the requested resource',
  409: 'the server reported a conflict',
  422: 'the server rejected our request due to an error in our request',
  429: 'the server has received too many requests and has asked us to try again later',
  503: 'the server is currently unable to handle the request',
  504: 'the server was unable to return a response in the time allotted, but may still be processing the request',
};

/** The server's own text is all there is to say. */
const SAID_BY_SERVER: ReadonlySet<number> = new Set([403, 413, 415]);

/** A Status speaks for itself; other texts are repeated where they are said to be text. */
export function answerProblem({ status, headers }: Pick<ApiResponse, 'status' | 'headers'>, body: Uint8Array): string {
  const text = new TextDecoder().decode(body);
  const own = /^\s*\{/.test(text) ? messageIn(text) : undefined;
  if (own !== undefined) return own;
  const known = TEXTS[status];
  if (known !== undefined) return known;
  const type = headers['content-type'] ?? '';
  const said = type === '' || type.startsWith('text/') ? text.slice(0, MAX_SAID).trim() || UNKNOWN : UNKNOWN;
  if (SAID_BY_SERVER.has(status)) return said;
  if (status === 406) {
    return said === UNKNOWN ? 'the server was unable to respond with a content type that the client supports' : said;
  }
  if (status >= 500) return `an error on the server (${goQuote(said)}) has prevented the request from succeeding`;
  return `the server responded with the status code ${status} but did not return more information`;
}

function messageIn(text: string): string | undefined {
  try {
    const { kind, message } = JSON.parse(text) as Record<string, unknown>;
    return kind === 'Status' && typeof message === 'string' && message !== '' ? message.slice(0, MAX_SAID) : undefined;
  } catch {
    return undefined;
  }
}
