/**
 * The keys of a work queue that come due later: a key waits once, and the earliest time asked for wins. Bounded by the
 * number of distinct keys. One timer for all.
 */
import type { Clock } from '@coracle/runtime/clock/clock';

interface Entry {
  readonly key: string;
  readonly at: number;
}

/** Makes a queue that calls `due` for each key when its time has come. */
export function createDelayQueue(clock: Clock, due: (key: string) => void) {
  /** The valid time of each waiting key; heap entries that disagree are stale and skipped. */
  const times = new Map<string, number>();
  let heap: Entry[] = [];
  let cancelTimer: (() => void) | undefined;
  let timerAt = Number.POSITIVE_INFINITY;

  const arm = (): void => {
    while (heap.length > 0 && times.get(heap[0]!.key) !== heap[0]!.at) pop(heap);
    // Keys moved forward leave stale entries behind: drop them before they outnumber the valid ones.
    // Sorted by time, a list is a heap.
    if (heap.length > 2 * times.size + 64)
      heap = Array.from(times, ([key, at]) => ({ key, at })).sort((a, b) => a.at - b.at);
    const first = heap[0];
    if (first && cancelTimer && timerAt <= first.at) return;
    cancelTimer?.();
    cancelTimer = first && clock.schedule(Math.max(0, first.at - clock.monotonic()), fire);
    timerAt = first?.at ?? Number.POSITIVE_INFINITY;
  };

  const fire = (): void => {
    cancelTimer = undefined;
    const now = clock.monotonic();
    const ready: string[] = [];
    while (heap.length > 0 && heap[0]!.at <= now) {
      const { key, at } = pop(heap)!;
      if (times.get(key) !== at) continue;
      times.delete(key);
      ready.push(key);
    }
    arm();
    for (const key of ready) due(key);
  };

  return {
    /** Has `key` come due after `ms`, unless it comes due earlier already. */
    add(key: string, ms: number): void {
      // Whole milliseconds, rounded up: a timer may fire a fraction early and would find nothing due.
      const at = Math.ceil(clock.monotonic() + Math.max(0, ms));
      const known = times.get(key);
      if (known !== undefined && known <= at) return;
      times.set(key, at);
      push(heap, { key, at });
      arm();
    },
    /** Forgets a waiting key. */
    remove(key: string): void {
      if (times.delete(key)) arm();
    },
    /** Forgets everything and stops the timer. */
    clear(): void {
      times.clear();
      heap = [];
      arm();
    },
  };
}

function push(heap: Entry[], entry: Entry): void {
  heap.push(entry);
  let i = heap.length - 1;
  while (i > 0) {
    const parent = (i - 1) >> 1;
    if (heap[parent]!.at <= entry.at) break;
    heap[i] = heap[parent]!;
    i = parent;
  }
  heap[i] = entry;
}

function pop(heap: Entry[]): Entry | undefined {
  const top = heap[0];
  const last = heap.pop();
  if (heap.length === 0 || last === undefined) return top;
  let i = 0;
  for (;;) {
    let child = 2 * i + 1;
    if (child >= heap.length) break;
    if (child + 1 < heap.length && heap[child + 1]!.at < heap[child]!.at) child++;
    if (heap[child]!.at >= last.at) break;
    heap[i] = heap[child]!;
    i = child;
  }
  heap[i] = last;
  return top;
}
