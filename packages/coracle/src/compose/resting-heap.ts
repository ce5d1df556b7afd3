/**
 * The heap of a process that nobody asks anything: the engine shrinks it only where memory counts for more than speed.
 * While it is asked to, code gets no faster and a create costs half as much again, so it is asked at rest only.
 */
import { performance } from 'node:perf_hooks';
import { setFlagsFromString } from 'node:v8';
import type { Clock } from '@coracle/runtime/clock/clock';

/** How often the load is looked at, in milliseconds; the first requests after a rest are this long without the speed. */
const LOOK_MS = 250;
/** Looks in a row, each of them at less load than this, before the process counts as at rest. */
const QUIET_LOOKS = 4;
/** Share of the time, 0 to 1, in which the event loop did something. */
const QUIET_BELOW = 0.1;
/**
 * From one look of the engine, whether it may give memory back, to the next: a second instead of eight. The launcher says
 * the same of the first one (`--gc-memory-reducer-start-delay-ms`), and in V8 13 (Node 24) that goes for all.
 */
const ENGINE_LOOKS = '--memory-reducer-delay-ms=1000';
const hasEngineLooks = (v8: string): boolean => Number.parseInt(v8, 10) >= 14;

export interface RestingHeapOptions {
  readonly clock: Clock;
  /** Share of the time since the last call in which the event loop did something; that of this process by default. */
  readonly load?: () => number;
  /** Sets a flag of the engine, for all threads of this process. */
  readonly setFlag?: (flag: string) => void;
}

/**
 * From now on lets the engine give memory back while the process is at rest. It collects in small steps,
 * at most twice until the heap has grown again. Returns the stop.
 */
export function startRestingHeap({
  clock,
  load = loadSinceLast(),
  setFlag = setFlagsFromString,
}: RestingHeapOptions): () => void {
  if (hasEngineLooks(process.versions.v8)) setFlag(ENGINE_LOOKS);
  let quiet = 0;
  let cancel: () => void = () => {};
  const plan = (): void => {
    cancel = clock.schedule(LOOK_MS, () => {
      const wasResting = quiet >= QUIET_LOOKS;
      quiet = load() < QUIET_BELOW ? quiet + 1 : 0;
      const isResting = quiet >= QUIET_LOOKS;
      if (isResting !== wasResting) setFlag(isResting ? '--optimize-for-size' : '--no-optimize-for-size');
      plan();
    });
  };
  plan();
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
