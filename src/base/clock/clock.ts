/** Time as a dependency: everything that waits or stamps takes a Clock, so that tests own the time. */
export interface Clock {
  /** Wall clock, milliseconds since the epoch. For stamps that people read. */
  now(): number;
  /** Monotonic milliseconds. For durations and deadlines. */
  monotonic(): number;
  /** Resolves after `ms`; rejects with the signal's reason when it aborts first. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
  /** Calls `fire` once after `ms`; the returned function cancels it. */
  schedule(ms: number, fire: () => void): () => void;
}

type TimerHandle = ReturnType<typeof setTimeout> & { unref?: () => void };

/** The real clock. Scheduled callbacks do not keep a process alive. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  sleep(ms, signal) {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason as Error);
      const done = (): void => {
        signal.removeEventListener('abort', stop);
        resolve();
      };
      const timer = setTimeout(done, ms);
      const stop = (): void => {
        clearTimeout(timer);
        reject(signal.reason as Error);
      };
      signal.addEventListener('abort', stop, { once: true });
    });
  },
  schedule(ms, fire) {
    const timer = setTimeout(fire, ms) as TimerHandle;
    timer.unref?.();
    return () => clearTimeout(timer);
  },
};
