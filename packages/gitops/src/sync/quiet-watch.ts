/** Tells when much was done and nothing is for a while: then what that took may be given back. */
import type { Clock } from '@coracle/runtime/clock/clock';

/** Objects of one attempt that are much. */
const MANY_OBJECTS = 200;
/** Without an attempt. */
const QUIET_MS = 15_000;

export class QuietWatch {
  readonly #clock: Clock;
  readonly #onQuiet: () => void;
  #isMuch = false;
  #stopWaiting = (): void => {};

  constructor(clock: Clock, onQuiet: () => void) {
    this.#clock = clock;
    this.#onQuiet = onQuiet;
  }

  /** An attempt of any sync has ended; `objects`: those that it did not pass over. */
  attempted(objects: number): void {
    this.#isMuch ||= objects >= MANY_OBJECTS;
    if (!this.#isMuch) return;
    this.#stopWaiting();
    this.#stopWaiting = this.#clock.schedule(QUIET_MS, () => {
      this.#isMuch = false;
      this.#onQuiet();
    });
  }

  stop(): void {
    this.#stopWaiting();
  }
}
