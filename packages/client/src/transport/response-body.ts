/** Reads the three forms a response body may have: bytes, a list of chunks, a stream. */
import { joinBytes } from '@coracle/apimachinery/meta/join-bytes';
import type { ApiResponse } from '@coracle/runtime/http/seam';
import { NO_BYTES } from '@coracle/runtime/http/seam';
import { createByteQueue, type Part } from './byte-queue.ts';

/** Largest whole body read into memory: a full list of a large cluster is far below it. */
const MAX_BODY_BYTES = 512 * 1024 * 1024;

/**
 * The chunks of a body as they come. Leaving the loop early releases the stream.
 * @throws the signal's reason when it aborts
 */
export const bodyChunks = (response: ApiResponse, signal: AbortSignal): AsyncGenerator<Uint8Array, void, void> =>
  // Documents come only to who asks for them.
  bodyParts(response, signal) as AsyncGenerator<Uint8Array, void, void>;

/** The same, where with `documents` lines may come as frozen values. */
export async function* bodyParts(
  response: ApiResponse,
  signal: AbortSignal,
  options: { readonly documents?: boolean } = {},
): AsyncGenerator<Part, void, void> {
  const { body } = response;
  if (body === undefined) return;
  if (body instanceof Uint8Array) {
    yield body;
    return;
  }
  if (typeof body !== 'function') {
    yield* body;
    return;
  }
  const queue = createByteQueue(signal, options);
  try {
    body(queue.sink);
    for (;;) {
      const part = await queue.next();
      signal.throwIfAborted();
      if (part === undefined) return;
      yield part;
    }
  } finally {
    queue.close();
  }
}

/**
 * The whole body.
 * @throws RangeError when it is larger than the bound, Error when it ends before its content-length
 */
export async function wholeBody(response: ApiResponse, signal: AbortSignal): Promise<Uint8Array> {
  const { body } = response;
  if (body === undefined) return NO_BYTES;
  if (body instanceof Uint8Array) return body;
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of bodyChunks(response, signal)) {
    size += chunk.length;
    if (size > MAX_BODY_BYTES) throw new RangeError(`Cannot read response: longer than ${MAX_BODY_BYTES} bytes`);
    parts.push(chunk);
  }
  const declared = response.headers['content-length'];
  // A connection that breaks ends a stream just as its end does; only the length tells.
  if (typeof body === 'function' && declared !== undefined && size < Number(declared)) {
    throw new Error(`Cannot read response: connection ended after ${size} of ${declared} bytes`);
  }
  return parts.length === 1 ? parts[0]! : joinBytes(parts);
}
