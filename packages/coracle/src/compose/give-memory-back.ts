import { performance } from 'node:perf_hooks';
import { getHeapStatistics } from 'node:v8';
import type { Clock } from '@coracle/runtime/clock/clock';
import { giveMemoryBack } from '@coracle/runtime/process/give-memory-back';

/** How long a process has to do nothing after its start, in milliseconds. */
const REST_MS = 2000;
/** So many times as long later: a machine that was just made boots, and needs the processors more. */
const RESTS = 5;
/** From look to look where there is nothing to give back. */
const LOOK_MS = 15_000;
/** Share of the time, 0 to 1, in which the event loop does something at most at rest. */
const QUIET_BELOW = 0.1;
const MIB = 1024 * 1024;
/** By so much the heap has grown since memory was given back, or it is not worth the pause. */
const WORTH = 8 * MIB;
/** A larger heap would stop the process for longer than a request may wait; the engine collects it in small steps. */
const MOST = 128 * MIB;

export interface RestOptions {
  readonly clock: Clock;
  /** Share of the time since the last call in which the event loop did something; that of this process by default. */
  readonly load?: () => number;
  /** Bytes of the heap. */
  readonly heap?: () => number;
  readonly giveBack?: () => void;
}

/** From now on gives memory back whenever nobody has asked anything for a while, after the start soon. Returns the stop. */
export function giveMemoryBackAtRest({
  clock,
  load = loadSinceLast(),
  heap = () => getHeapStatistics().total_heap_size,
  giveBack = giveMemoryBack,
}: RestOptions): () => void {
  let left = 0;
  let rests = 0;
  let cancel: () => void;
  const plan = (ms: number): void => {
    cancel = clock.schedule(ms, () => {
      rests = load() < QUIET_BELOW && ms === REST_MS ? rests + 1 : 0;
      const bytes = heap();
      const isWorth = bytes - left >= WORTH && bytes <= MOST;
      if (isWorth && rests >= (left === 0 ? 1 : RESTS)) {
        giveBack();
        left = heap();
        rests = 0;
      }
      plan(isWorth ? REST_MS : LOOK_MS);
    });
  };
  plan(REST_MS);
  return () => cancel();
}

function loadSinceLast(): () => number {
  let before = performance.eventLoopUtilization();
  return () => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, before);
    before = now;
    return utilization;
  };
}
