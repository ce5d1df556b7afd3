/** The whole body of an answer, for callers of webhooks: bounded, and given up with the signal. */
import { joinBytes } from '@coracle/apimachinery/meta/join-bytes';
import { type ApiResponse, NO_BYTES } from '@coracle/runtime/http/seam';

/** Resolves to the body's bytes. Rejects with an Error beyond `limit` bytes, or with the signal's reason. */
export function readWhole(
  { body }: ApiResponse,
  { limit, signal }: { readonly limit: number; readonly signal: AbortSignal },
): Promise<Uint8Array> {
  if (body === undefined) return Promise.resolve(NO_BYTES);
  if (body instanceof Uint8Array) return Promise.resolve(body);
  if (typeof body !== 'function') return Promise.resolve(joined(body));
  return new Promise((resolve, reject) => {
    const given = new AbortController();
    const chunks: Uint8Array[] = [];
    let length = 0;
    let settled = false;
    const settle = (act: () => void): void => {
      if (settled) return;
      settled = true;
      signal.removeEventListener('abort', abort);
      act();
    };
    const abort = (): void => {
      settle(() => reject(signal.reason as Error));
      given.abort(signal.reason);
    };
    if (signal.aborted) return abort();
    signal.addEventListener('abort', abort, { once: true });
    body({
      buffered: 0,
      signal: given.signal,
      drained: () => Promise.resolve(),
      write(chunk) {
        length += chunk.length;
        if (length <= limit) {
          chunks.push(chunk);
          return true;
        }
        settle(() => reject(new Error(`the answer is larger than ${limit} bytes`)));
        given.abort();
        return false;
      },
      end: () => settle(() => resolve(joined(chunks))),
    });
  });
}

const joined = (chunks: readonly Uint8Array[]): Uint8Array => (chunks.length === 1 ? chunks[0]! : joinBytes(chunks));
