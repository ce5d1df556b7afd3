/**
 * Keeps the log short: every few minutes it forgets what is older than one interval, and sooner when much was
 * superseded. A failure is counted, logged and tried again; it never ends the compactions to come.
 */
import type { Clock } from '@coracle/runtime/clock/clock';
import type { Logger } from '@coracle/runtime/log/log';

/** Milliseconds between compactions, and after a failed one. */
export const COMPACTION_INTERVAL = 5 * 60_000;
const RETRY_DELAY = 30_000;

export interface CompactorOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly interval: number;
  /** Newest published revision. */
  readonly revision: () => number;
  /** Lets the memory forget first, so that nobody is promised what the disk may no longer have. */
  readonly forget: (revision: number) => void;
  readonly compact: (revision: number) => Promise<void>;
}

export interface Compactor {
  readonly done: number;
  readonly failed: number;
  /** Compacts up to `revision` soon; for when the log grows faster than the interval assumes. */
  hurry(revision: number): void;
  /** Ends the schedule; resolves when no compaction is running. */
  stop(): Promise<void>;
}

/** Starts the schedule. The first compaction comes after two intervals: only then is a revision known to be old. */
export function startCompactor(options: CompactorOptions): Compactor {
  const { clock, log, interval, revision, forget, compact } = options;
  let done = 0;
  let failed = 0;
  let stopped = false;
  let running: Promise<void> | undefined;
  let cancelTick = (): void => {};
  let cancelRetry = (): void => {};
  let atLastTick: number | undefined;
  let wanted = 0;

  const run = async (): Promise<void> => {
    cancelRetry();
    while (!stopped && wanted > 0) {
      const target = wanted;
      forget(target);
      try {
        await compact(target);
        done++;
        if (wanted === target) wanted = 0;
      } catch (error) {
        failed++;
        if (stopped) return;
        log.error('compaction failed, will be tried again', { revision: target, failed, error: String(error) });
        cancelRetry = clock.schedule(RETRY_DELAY, start);
        return;
      }
    }
  };
  const start = (): void => {
    running ??= run().finally(() => {
      running = undefined;
    });
  };
  const want = (target: number): void => {
    if (stopped || target <= wanted) return;
    wanted = target;
    start();
  };
  const tick = (): void => {
    if (atLastTick !== undefined) want(atLastTick);
    atLastTick = revision();
    cancelTick = clock.schedule(interval, tick);
  };
  cancelTick = clock.schedule(interval, tick);

  return {
    get done() {
      return done;
    },
    get failed() {
      return failed;
    },
    hurry: want,
    async stop() {
      stopped = true;
      cancelTick();
      cancelRetry();
      await running;
    },
  };
}
