/** The whole body of an answer, for callers of webhooks: bounded, and given up with the signal. */
import { joinBytes } from '@coracle/apimachinery/meta/join-bytes';
import { type ApiResponse, NO_BYTES } from '@coracle/runtime/http/seam';
import { abortable } from '@coracle/runtime/signal/abortable';

/** Resolves to the body's bytes. Rejects with an Error beyond `limit` bytes, or with the signal's reason. */
export function readWhole(
  { body }: ApiResponse,
  { limit, signal }: { readonly limit: number; readonly signal: AbortSignal },
): Promise<Uint8Array> {
  if (body === undefined) return Promise.resolve(NO_BYTES);
  if (body instanceof Uint8Array) return Promise.resolve(body);
  if (typeof body !== 'function') return Promise.resolve(joined(body));
  if (signal.aborted) return Promise.reject(signal.reason as Error);
  const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>();
  const over = new AbortController();
  const chunks: Uint8Array[] = [];
  let length = 0;
  body({
    buffered: 0,
    signal: AbortSignal.any([signal, over.signal]),
    drained: () => Promise.resolve(),
    write(chunk) {
      length += chunk.length;
      if (length <= limit) {
        chunks.push(chunk);
        return true;
      }
      reject(new Error(`the answer is larger than ${limit} bytes`));
      over.abort();
      return false;
    },
    end: () => resolve(joined(chunks)),
  });
  return abortable(promise, signal);
}

const joined = (chunks: readonly Uint8Array[]): Uint8Array => (chunks.length === 1 ? chunks[0]! : joinBytes(chunks));
