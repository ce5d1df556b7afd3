/** Exponential backoff as a pure function, and as a small counter for loops that reconnect. */

export interface BackoffPolicy {
  /** Delay after the first failure, milliseconds. */
  readonly baseMs: number;
  /** No delay is longer, jitter included. */
  readonly maxMs: number;
  /** Share of the delay added at random, so that many clients do not come back at once; 0.1 when absent. */
  readonly jitter?: number;
}

/** The delay in milliseconds before try number `failures + 1`; `failures` counts from 1. */
export function backoffDelay(policy: BackoffPolicy, failures: number, random: () => number = Math.random): number {
  // The exponent is bounded first: 2 ** 2000 is Infinity, and Infinity * 0 is not a number.
  const grown = policy.baseMs * 2 ** Math.min(Math.max(failures, 1) - 1, 64);
  const delay = Math.min(grown, policy.maxMs);
  return Math.min(delay * (1 + (policy.jitter ?? 0.1) * random()), policy.maxMs);
}

/** Makes a failure counter over `backoffDelay`. */
export function createBackoff(policy: BackoffPolicy, random: () => number = Math.random) {
  let failures = 0;
  return {
    /** Counts one more failure and returns how long to wait, milliseconds. */
    next: (): number => backoffDelay(policy, ++failures, random),
    /** Success: the next failure waits `baseMs` again. */
    reset(): void {
      failures = 0;
    },
  };
}
