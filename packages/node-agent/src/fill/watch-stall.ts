import type { Clock } from '@coracle/runtime/clock/clock';

export interface StallOptions {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Milliseconds without a byte after which the connection counts as broken. Default STALL_MS. */
  readonly stallMs?: number;
}

export interface StallWatch {
  /** Aborted with the parent, or with an Error that says who has sent nothing for how long. */
  readonly signal: AbortSignal;
  /** A byte has come. */
  alive(): void;
  stop(): void;
}

const STALL_MS = 30_000;

/** Ends a transfer when no byte has come from `sender` for a while. */
export function watchStall(sender: string, { clock, signal, stallMs = STALL_MS }: StallOptions): StallWatch {
  const stalled = new AbortController();
  let last = clock.monotonic();
  let cancel = (): void => {};
  const plan = (ms: number): void => {
    cancel = clock.schedule(ms, () => {
      const left = last + stallMs - clock.monotonic();
      if (left > 0) plan(left);
      else stalled.abort(new Error(`${sender} has sent nothing for ${stallMs / 1000} s`));
    });
  };
  plan(stallMs);
  return {
    signal: AbortSignal.any([signal, stalled.signal]),
    alive() {
      last = clock.monotonic();
    },
    stop: () => cancel(),
  };
}
