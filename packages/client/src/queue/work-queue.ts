/**
 * A work queue as in client-go: keys are deduped, never run twice at once, come back after a delay or, after failures,
 * after a growing one. Bounded by the number of distinct keys.
 *
 * Many keys need no more than a look, and wait for nobody: others are let in between them all the same.
 */
import type { Clock } from '@coracle/runtime/clock/clock';
import { nextTurn } from '@coracle/runtime/clock/next-turn';
import { type BackoffPolicy, backoffDelay } from '@coracle/runtime/retry/backoff';
import { createDelayQueue } from './delay-queue.ts';

export interface WorkQueueOptions {
  readonly clock: Clock;
  /** Keys run at once; 1 when absent. */
  readonly concurrency?: number;
  /** Does the work of one key. What it throws is a bug of the caller: it must handle failures itself. */
  readonly run: (key: string) => Promise<void>;
  readonly random?: () => number;
}

/** client-go's per-item limiter: 5 ms, doubling, at most 1000 s. */
const BACKOFF: BackoffPolicy = { baseMs: 5, maxMs: 1_000_000, jitter: 0.1 };

/** Makes a queue that gathers keys until `start`. */
export function createWorkQueue({ clock, concurrency = 1, run, random }: WorkQueueOptions) {
  /** Only keys that failed since their last success. */
  const failures = new Map<string, number>();
  /** In order of arrival. */
  const line = new Set<string>();
  const running = new Set<string>();
  /** Keys that became ready while they ran. */
  const held = new Set<string>();
  const ended = Promise.withResolvers<void>();
  let started = false;
  let stopped = false;
  let pausing = false;

  /** True while others have their turn. */
  const pauses = (): boolean => {
    if (pausing || !clock.turnIsLong()) return pausing;
    pausing = true;
    void nextTurn().then(() => {
      pausing = false;
      pump();
    });
    return true;
  };

  const pump = (): void => {
    while (started && running.size < concurrency && line.size > 0 && !pauses()) {
      const key = line.values().next().value!;
      line.delete(key);
      running.add(key);
      void run(key).finally(() => {
        running.delete(key);
        if (held.delete(key)) line.add(key);
        pump();
      });
    }
    if (stopped && running.size === 0) ended.resolve();
  };

  const ready = (key: string): void => {
    if (stopped) return;
    if (running.has(key)) held.add(key);
    else line.add(key);
    pump();
  };
  const delayed = createDelayQueue(clock, ready);

  const addAfter = (key: string, ms: number): void => {
    if (stopped) return;
    if (ms > 0) delayed.add(key, ms);
    else {
      delayed.remove(key);
      ready(key);
    }
  };

  return {
    /** Runs the key as soon as there is room; a delay it waited on is over. */
    add: (key: string): void => addAfter(key, 0),
    /** Runs the key after `ms`, or earlier if it was to run earlier. */
    addAfter,
    /** Runs the key after a pause that doubles with each call since `forget`. Returns the pause, milliseconds. */
    addRateLimited(key: string): number {
      const count = (failures.get(key) ?? 0) + 1;
      failures.set(key, count);
      const ms = backoffDelay(BACKOFF, count, random);
      addAfter(key, ms);
      return ms;
    },
    /** Success: the next failure of the key counts as the first. */
    forget: (key: string): void => void failures.delete(key),
    /** Begins to run keys. */
    start(): void {
      started = true;
      pump();
    },
    /** Starts no more keys and forgets those that wait; resolves when the running ones are done. */
    stop(): Promise<void> {
      stopped = true;
      delayed.clear();
      line.clear();
      held.clear();
      pump();
      return ended.promise;
    },
  };
}
