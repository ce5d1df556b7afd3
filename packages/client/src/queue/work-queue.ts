/**
 * A work queue as in client-go: keys are deduped, never run twice at once, come back after a delay or, after failures,
 * after a growing one. Made of a scheduler (`delay-queue.ts`) and a runner (`runner.ts`).
 */
import type { Clock } from '@coracle/runtime/clock/clock';
import { type BackoffPolicy, backoffDelay } from '@coracle/runtime/retry/backoff';
import { createDelayQueue } from './delay-queue.ts';
import { createRunner } from './runner.ts';

export interface WorkQueueOptions {
  readonly clock: Clock;
  /** Keys run at once; 1 when absent. */
  readonly concurrency?: number;
  /** Does the work of one key. What it throws is a bug of the caller: it must handle failures itself. */
  readonly run: (key: string) => Promise<void>;
  /** Pauses of `addRateLimited`; 5 ms to 1000 s when absent. */
  readonly backoff?: BackoffPolicy;
  readonly random?: () => number;
}

export interface WorkQueue {
  /** Runs the key as soon as there is room; a delay it waited on is over. */
  add(key: string): void;
  /** Runs the key after `ms`, or earlier if it was to run earlier. */
  addAfter(key: string, ms: number): void;
  /** Runs the key after a pause that doubles with each call since `forget`. Returns the pause, milliseconds. */
  addRateLimited(key: string): number;
  /** Success: the next failure of the key counts as the first. */
  forget(key: string): void;
  /** Calls of `addRateLimited` since `forget`. */
  failures(key: string): number;
  /** Begins to run keys. */
  start(): void;
  /** Starts no more keys; resolves when the running ones are done. */
  stop(): Promise<void>;
  /** Keys in line, held or delayed. */
  readonly size: number;
  /** Resolves when nothing runs and nothing is in line; delayed keys do not count. */
  idle(): Promise<void>;
}

/** client-go's per-item limiter: 5 ms, doubling, at most 1000 s. */
export const ITEM_BACKOFF: BackoffPolicy = { baseMs: 5, maxMs: 1_000_000, factor: 2, jitter: 0.1 };

/** Makes a queue that gathers keys until `start`. */
export function createWorkQueue(options: WorkQueueOptions): WorkQueue {
  const { clock, concurrency = 1, backoff = ITEM_BACKOFF, random } = options;
  /** Only keys that failed since their last success. */
  const failures = new Map<string, number>();
  const runner = createRunner(concurrency, options.run, clock);
  const delayed = createDelayQueue(clock, (key) => runner.add(key));
  let stopped = false;

  const addAfter = (key: string, ms: number): void => {
    if (stopped) return;
    if (ms > 0) {
      delayed.add(key, ms);
      return;
    }
    delayed.remove(key);
    runner.add(key);
  };

  return {
    add: (key) => addAfter(key, 0),
    addAfter,
    addRateLimited(key) {
      const count = (failures.get(key) ?? 0) + 1;
      failures.set(key, count);
      const ms = backoffDelay(backoff, count, random);
      addAfter(key, ms);
      return ms;
    },
    forget: (key) => {
      failures.delete(key);
    },
    failures: (key) => failures.get(key) ?? 0,
    start: () => runner.open(),
    async stop() {
      stopped = true;
      delayed.clear();
      runner.close();
      await runner.idle();
    },
    get size() {
      return runner.waiting + delayed.size;
    },
    idle: () => runner.idle(),
  };
}
