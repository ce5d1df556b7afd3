/**
 * The runner half of the work queue: runs ready keys, `concurrency` at a time, never two equal keys at once. A key that
 * becomes ready while it runs is held and runs once more after. Bounded by the number of distinct keys.
 *
 * Many keys need no more than a look, and wait for nobody: others are let in between them all the same.
 */
import type { Clock } from '@coracle/runtime/clock/clock';
import { nextTurn } from '@coracle/runtime/clock/next-turn';

export interface Runner {
  /** Marks a key ready; a key that is ready already stays where it is in the line. */
  add(key: string): void;
  /** Lets keys run; before, they only gather. */
  open(): void;
  /** Starts no more keys and forgets those in line. */
  close(): void;
  /** Keys in line or held, without those that run. */
  readonly waiting: number;
  readonly running: number;
  /** Resolves when nothing runs any more (nothing may be in line either, unless closed). */
  idle(): Promise<void>;
}

/** Makes a closed runner. `run` must not throw. */
export function createRunner(
  concurrency: number,
  run: (key: string) => Promise<void>,
  clock: Pick<Clock, 'turnIsLong'>,
): Runner {
  /** In order of arrival. */
  const line = new Set<string>();
  const running = new Set<string>();
  const held = new Set<string>();
  let accepting = true;
  let opened = false;
  let idlers: (() => void)[] = [];
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
    while (opened && accepting && running.size < concurrency && line.size > 0 && !pauses()) {
      const next = line.values().next();
      if (next.done) break;
      const key = next.value;
      line.delete(key);
      running.add(key);
      void run(key).finally(() => {
        running.delete(key);
        if (held.delete(key) && accepting) line.add(key);
        pump();
      });
    }
    if (running.size === 0 && (line.size === 0 || !opened)) {
      for (const resolve of idlers) resolve();
      idlers = [];
    }
  };

  return {
    add(key) {
      if (!accepting) return;
      if (running.has(key)) held.add(key);
      else line.add(key);
      pump();
    },
    open() {
      opened = true;
      pump();
    },
    close() {
      accepting = false;
      line.clear();
      held.clear();
      pump();
    },
    get waiting() {
      return line.size + held.size;
    },
    get running() {
      return running.size;
    },
    idle() {
      if (running.size === 0 && line.size === 0) return Promise.resolve();
      return new Promise((resolve) => idlers.push(resolve));
    },
  };
}
