import type { Clock } from '../clock/clock.ts';
import { type BackoffPolicy, backoffDelay } from './backoff.ts';

export interface RetryOptions {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly policy: BackoffPolicy;
  /** Tries in all, the first included. */
  readonly attempts: number;
  /** Which failures are worth another try; all of them when absent. */
  readonly retryable?: (error: unknown) => boolean;
  readonly random?: () => number;
}

/**
 * Calls `act` until it succeeds, fails for good or runs out of attempts; then its last error is thrown.
 * @throws the signal's reason when it aborts before a try or during a pause
 */
export async function retry<T>(act: (attempt: number) => Promise<T>, options: RetryOptions): Promise<T> {
  const { clock, signal, policy, attempts, retryable, random } = options;
  for (let attempt = 1; ; attempt++) {
    signal.throwIfAborted();
    try {
      return await act(attempt);
    } catch (error) {
      if (attempt >= attempts || signal.aborted || (retryable && !retryable(error))) throw error;
      await clock.sleep(backoffDelay(policy, attempt, random), signal);
    }
  }
}
