/** The whole body of an answer, for callers of webhooks: bounded, and given up with the signal. */
import { type ApiResponse, NO_BYTES } from '../../base/http/seam.ts';

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

function joined(chunks: readonly Uint8Array[]): Uint8Array {
  if (chunks.length === 1) return chunks[0]!;
  const whole = new Uint8Array(chunks.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.length;
  }
  return whole;
}
