/** One call of the API: its headers, its body as JSON, and what a refusal says. */
import type { ApiHandler, ApiResponse } from '@coracle/runtime/http/seam';
import { NEVER, NO_BYTES } from '@coracle/runtime/http/seam';
import { abortable } from '@coracle/runtime/signal/abortable';
import { errorOfResponse } from './api-failure.ts';
import { wholeBody } from './transport/response-body.ts';

/** Who calls, and in whose name. */
export interface ClientOptions {
  /** `name/version`; the part before the slash becomes the field manager of writes. */
  readonly userAgent?: string;
  /** Bearer token, or where to get the newest. */
  readonly token?: string | (() => string);
  /** In whose name it asks. */
  readonly impersonate?: string;
}

export const JSON_TYPE = 'application/json';

const LOCAL = { address: '' };
const encoder = new TextEncoder();
const decoder = new TextDecoder();

export interface Call {
  readonly method: string;
  readonly path: string;
  readonly query?: string;
  readonly body?: unknown;
  readonly contentType?: string;
  readonly accept?: string;
  readonly signal?: AbortSignal | undefined;
}

export type ApiCalls = ReturnType<typeof createApiCalls>;

/** Makes the calls that lead to `handler`. */
export function createApiCalls(handler: ApiHandler, options: ClientOptions) {
  const { userAgent = 'coracle', token, impersonate } = options;

  /** The response as it comes, whatever its status. */
  const send = (call: Call, signal: AbortSignal): Promise<ApiResponse> => {
    const headers: Record<string, string> = { accept: call.accept ?? JSON_TYPE, 'user-agent': userAgent };
    if (call.body !== undefined) headers['content-type'] = call.contentType ?? JSON_TYPE;
    if (token !== undefined) headers['authorization'] = `Bearer ${typeof token === 'string' ? token : token()}`;
    if (impersonate !== undefined) headers['impersonate-user'] = impersonate;
    const response = handler({
      method: call.method,
      path: call.path,
      query: call.query ?? '',
      headers,
      body: call.body === undefined ? NO_BYTES : encoder.encode(JSON.stringify(call.body)),
      peer: LOCAL,
      signal,
    });
    // A handler may be slow to notice; an answer that comes after all finds its signal aborted and releases itself.
    return signal === NEVER ? response : abortable(response, signal);
  };

  const text = async (response: ApiResponse, signal: AbortSignal): Promise<string> =>
    decoder.decode(await wholeBody(response, signal));

  /** Reads a refusal as the error that it is. */
  const failure = async (call: Call, response: ApiResponse, signal: AbortSignal): Promise<Error> =>
    errorOfResponse(response.status, await text(response, signal), `${call.method} ${call.path}`);

  /** The parsed answer, the text of one that is not JSON, undefined for an empty one. Rejects with what a refusal says. */
  const call = async <T = unknown>(request: Call): Promise<T> => {
    const signal = request.signal ?? NEVER;
    signal.throwIfAborted();
    const response = await send(request, signal);
    if (response.status < 200 || response.status > 299) throw await failure(request, response, signal);
    const body = await text(response, signal);
    const isJson = (response.headers['content-type'] ?? JSON_TYPE).includes('json');
    return (body === '' ? undefined : isJson ? JSON.parse(body) : body) as T;
  };
  return { send, failure, call };
}
