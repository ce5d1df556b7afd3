/** When the next attempt of a sync is due, and why: what is new at once, what failed later and later, everything once an hour. */
import type { Clock } from '@coracle/runtime/clock/clock';
import { backoffDelay } from '@coracle/runtime/retry/backoff';
import type { DeleteMode } from '../plan/dependents.ts';
import type { Trigger } from '../status/sync-metrics.ts';

const RETRY = { baseMs: 1000, maxMs: 5 * 60_000, jitter: 0.1 };
const GOING = { baseMs: 500, maxMs: 30_000, jitter: 0.1 };
const RESYNC_MS = 60 * 60_000;

/** What an attempt was at. */
export interface AttemptAt {
  readonly commit: string;
  readonly generation: number;
  readonly isGuarded: boolean;
  readonly deleteMode: DeleteMode;
}

export class AttemptPace {
  readonly #clock: Clock;
  /** What the last attempt was at. */
  #done: AttemptAt | undefined;
  #failures = 0;
  /** Attempts in a row after which objects were on their way out still. */
  #goings = 0;
  #retryAt = 0;
  /** The spec for which everything was written, and until when (monotonic) that will do. */
  #full: { readonly generation: number; readonly until: number } | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** When the next attempt is due though nothing is new, as `clock.monotonic()` counts. */
  get retryAt(): number {
    return this.#retryAt;
  }

  /** The commit of the last attempt. */
  get commit(): string | undefined {
    return this.#done?.commit;
  }

  /** Why to make an attempt now; undefined when there is no reason to. `isOther`: something else makes it another one. */
  due(at: AttemptAt, isOther: boolean): Trigger | undefined {
    const before = this.#done;
    const isNew =
      isOther ||
      before?.commit !== at.commit ||
      before.generation !== at.generation ||
      before.isGuarded !== at.isGuarded ||
      before.deleteMode !== at.deleteMode;
    if (isNew) {
      this.settled();
      this.#goings = 0;
      return 'reimport';
    }
    if (this.#clock.monotonic() < this.#retryAt) return undefined;
    return this.#failures > 0 || this.#goings > 0 ? 'retry' : 'resync';
  }

  /** An attempt was made, however it ended. */
  made(at: AttemptAt): void {
    this.#done = at;
  }

  /** Whichever commit comes next is attempted, be it the one of the last attempt. */
  forget(): void {
    this.#done = undefined;
  }

  /** All went well, but for objects that may be on their way out still. */
  succeeded(isGoing: boolean): void {
    this.settled();
    this.#goings = isGoing ? this.#goings + 1 : 0;
    this.#retryAt = this.#clock.monotonic() + (isGoing ? backoffDelay(GOING, this.#goings) : RESYNC_MS);
  }

  /** Something failed, or is in the way: again, later each time. */
  retryLater(): void {
    this.#retryAt = this.#clock.monotonic() + this.failed();
  }

  /** The same, where somebody else may have ended it by now: no later than in a few minutes. */
  retrySoon(): void {
    if (this.#retryAt - this.#clock.monotonic() > RETRY.maxMs) this.retryLater();
  }

  /** What was in the way is gone. */
  retryNow(): void {
    this.#retryAt = 0;
    this.settled();
  }

  /** One more failure in a row; milliseconds to wait after it. */
  failed(): number {
    return backoffDelay(RETRY, ++this.#failures);
  }

  /** One more failure in a row; how many there are. */
  countFailure(): number {
    return ++this.#failures;
  }

  /** The next failure is a first one. */
  settled(): void {
    this.#failures = 0;
  }

  /** True where everything is written anew, whatever the watches say: for each spec, and now and then. */
  isFull(generation: number): boolean {
    return this.#full?.generation !== generation || this.#clock.monotonic() >= this.#full.until;
  }

  /** Everything was written. */
  wroteAll(generation: number): void {
    this.#full = { generation, until: this.#clock.monotonic() + RESYNC_MS };
  }
}
