/**
 * Reviews sent to a webhook that knows users or rights (apiserver/pkg/util/webhook): one object of JSON is posted, the
 * same comes back with its status. What may pass is tried again, with growing waits.
 */
import { parseJson } from '@coracle/apimachinery/schema/parse-json';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { ApiHandler, ApiResponse } from '@coracle/runtime/http/seam';
import { abortable } from '@coracle/runtime/signal/abortable';
import { answerProblem } from '../outbound/answer-problem.ts';
import { readWhole } from '../outbound/read-whole.ts';

/** Where a webhook is. */
export interface WebhookAddress {
  /** Reaches the webhook. */
  readonly handler: ApiHandler;
  /** Of its URL. */
  readonly path: string;
  readonly query?: string;
  /** What shows the webhook who asks. */
  readonly headers: Readonly<Record<string, string>>;
}

export const WEBHOOK_TIMEOUT_MS = 30_000;
const MAX_ANSWER_BYTES = 1024 * 1024;
/** Waits before a webhook that failed is asked again. */
const RETRY_MS = [500, 750, 1125, 1688];

/** A failure that another attempt may not meet (webhook.DefaultShouldRetry). */
class PassingFailure extends Error {}

/** The answer to `review`, read by `read`, which may throw as well. Rejects with what the last attempt said. */
export async function askWebhook<T>(
  address: WebhookAddress,
  review: object,
  {
    read,
    clock,
    timeoutMs = WEBHOOK_TIMEOUT_MS,
  }: { readonly read: (answer: unknown) => T; readonly clock: Clock; readonly timeoutMs?: number },
): Promise<T> {
  const body = new TextEncoder().encode(JSON.stringify(review));
  for (let attempt = 0; ; attempt++) {
    try {
      return read(await post(address, body, { clock, timeoutMs }));
    } catch (error) {
      const wait = RETRY_MS[attempt];
      if (wait === undefined || !mayPass(error)) throw error;
      await new Promise<void>((resolve) => clock.schedule(wait, resolve));
    }
  }
}

async function post(
  { handler, path, query = '', headers }: WebhookAddress,
  body: Uint8Array,
  { clock, timeoutMs }: { readonly clock: Clock; readonly timeoutMs: number },
): Promise<unknown> {
  const timeout = new AbortController();
  const cancel = clock.schedule(timeoutMs, () =>
    timeout.abort(new Error('context deadline exceeded (Client.Timeout exceeded while awaiting headers)')),
  );
  try {
    const response = await abortable(
      handler({
        method: 'POST',
        path,
        query,
        headers: { ...headers, 'content-type': 'application/json', accept: 'application/json' },
        body,
        peer: { address: '' },
        signal: timeout.signal,
      }),
      timeout.signal,
    );
    const bytes = await readWhole(response, { limit: MAX_ANSWER_BYTES, signal: timeout.signal });
    refuseStatus(response, bytes);
    return parseJson(bytes).value;
  } finally {
    cancel();
  }
}

/** A connection that was cut: a kept one may have been closed at the far end just then. */
function mayPass(error: unknown): boolean {
  for (let at = error; at instanceof Error; at = at.cause) {
    const { code } = at as NodeJS.ErrnoException;
    if (at instanceof PassingFailure || code === 'ECONNRESET' || code === 'EPIPE') return true;
  }
  return false;
}

function refuseStatus(response: ApiResponse, body: Uint8Array): void {
  const { status, headers } = response;
  if (status >= 200 && status <= 299) return;
  // Whoever says when to come again means to be asked again.
  const passes = status === 429 || (status >= 500 && status !== 503) || headers['retry-after'] !== undefined;
  throw new (passes ? PassingFailure : Error)(answerProblem(response, body));
}
