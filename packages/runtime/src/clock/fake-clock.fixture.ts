import type { Clock } from './clock.ts';

/** A clock that moves only when asked to. */
export interface FakeClock extends Clock {
  /** Moves time on by `ms`, firing what falls due in order and letting promise callbacks run between. */
  advance(ms: number): Promise<void>;
}

interface Timer {
  readonly at: number;
  readonly seq: number;
  readonly fire: () => void;
}

const settle = async (): Promise<void> => {
  for (let i = 0; i < 20; i++) await Promise.resolve();
};

/** Makes a fake clock that stands at `start` (ms since the epoch). */
export function createFakeClock(start = Date.UTC(2030, 0, 1)): FakeClock {
  let now = start;
  let seq = 0;
  const timers = new Set<Timer>();
  const schedule = (ms: number, fire: () => void): (() => void) => {
    const timer: Timer = { at: now + ms, seq: seq++, fire };
    timers.add(timer);
    return () => timers.delete(timer);
  };
  return {
    now: () => now,
    monotonic: () => now - start,
    schedule,
    turnIsLong: () => false,
    whenIdle: () => undefined,
    sleep(ms, signal) {
      return new Promise((resolve, reject) => {
        if (signal.aborted) return reject(signal.reason as Error);
        const cancel = schedule(ms, () => {
          signal.removeEventListener('abort', stop);
          resolve();
        });
        const stop = (): void => {
          cancel();
          reject(signal.reason as Error);
        };
        signal.addEventListener('abort', stop, { once: true });
      });
    },
    async advance(ms) {
      const end = now + ms;
      await settle();
      for (;;) {
        const due = [...timers].filter((t) => t.at <= end).sort((a, b) => a.at - b.at || a.seq - b.seq)[0];
        if (!due) break;
        timers.delete(due);
        now = Math.max(now, due.at);
        due.fire();
        await settle();
      }
      now = end;
      await settle();
    },
  };
}
