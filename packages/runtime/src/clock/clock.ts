import { endOfTurn, nextTurn } from './next-turn.ts';

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
  /**
   * True when those who asked in this turn of the event loop have kept it for some milliseconds: time to wait for
   * `nextTurn`. For whoever may have thousands of small things to do, each of which waits for nobody.
   */
  turnIsLong(): boolean;
  /** Resolves when the process has nothing else to do, or after `ms` (`untilIdle`); undefined: there is nothing to wait for. */
  whenIdle(ms: number, signal: AbortSignal): Promise<void> | undefined;
}

const LONG_TURN_MS = 5;
/** When somebody first asked in this turn. */
let turnBegan: number | undefined;

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
    const timer = setTimeout(fire, ms);
    // A browser's is a number.
    timer.unref?.();
    return () => clearTimeout(timer);
  },
  turnIsLong() {
    const now = performance.now();
    if (turnBegan !== undefined) return now - turnBegan >= LONG_TURN_MS;
    turnBegan = now;
    endOfTurn(() => {
      turnBegan = undefined;
    });
    return false;
  },
  whenIdle: (ms, signal) => untilIdle(systemClock, ms, signal),
};

/** A turn of the event loop in which nobody had much to do. */
const SHORT_TURN_MS = 1;
const PAUSE_MS = 20;

/** Resolves in a moment in which the process has nothing else to do, at the latest after `ms` and a pause, or when the signal aborts; never rejects. */
export async function untilIdle(
  clock: Pick<Clock, 'monotonic' | 'sleep'>,
  ms: number,
  signal: AbortSignal,
): Promise<void> {
  const latest = clock.monotonic() + ms;
  for (let asked = clock.monotonic(); asked < latest && !signal.aborted; asked = clock.monotonic()) {
    await nextTurn();
    if (clock.monotonic() - asked < SHORT_TURN_MS) return;
    await clock.sleep(PAUSE_MS, signal).catch(() => {});
  }
}
