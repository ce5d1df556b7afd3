/**
 * An ApiHandler whose credential may change while it lives: each request carries the newest one, and a 401 has the
 * credential renewed and the request sent once more. Nothing that an expired credential refused has happened, so that
 * any request may be sent again.
 */
import { type ApiHandler, type ApiRequest, type ApiResponse, redirected } from '@coracle/runtime/http/seam';
import { bodyChunks } from './response-body.ts';

/** One credential, with the connection that shows it where it is a client certificate. */
export interface Access {
  readonly handler: ApiHandler;
  /** Bearer token. */
  readonly token?: string;
}

export interface AccessSource {
  /** What to send now. Rejects when there is none, with one line that says why. */
  current(): Promise<Access>;
  /** Called when the server did not know `refused`; resolves to another one, or to `refused` when there is none. */
  renew(refused: Access): Promise<Access>;
}

/** Makes the handler. A request that carries its own `authorization` is sent as it is, and its 401 is the caller's. */
export function createRenewedHandler(source: AccessSource): ApiHandler {
  return async (request) => {
    const access = await source.current();
    if (request.headers['authorization'] !== undefined) return access.handler(request);
    const answer = await access.handler(withToken(request, access));
    if (answer.status !== 401) return answer;
    const next = await source.renew(access).catch(() => access);
    if (next === access) return answer;
    await release(answer);
    return next.handler(withToken(request, next));
  };
}

const withToken = (request: ApiRequest, { token }: Access): ApiRequest =>
  token === undefined
    ? request
    : redirected(request, { headers: { ...request.headers, authorization: `Bearer ${token}` } });

/** Leaves a body unread, and what it holds free. */
async function release(answer: ApiResponse): Promise<void> {
  const stop = new AbortController();
  try {
    for await (const _ of bodyChunks(answer, stop.signal)) break;
  } catch {
    // It was of no interest.
  } finally {
    stop.abort();
  }
}
