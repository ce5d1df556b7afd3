/** Says in the log when the copy of an informer does not follow the server for long, and when it does again. */
import type { Clock } from '@coracle/runtime/clock/clock';
import type { Logger } from '@coracle/runtime/log/log';

/** A copy that does not follow the server for this long is reported at level warning. */
export const WARN_MS = 10_000;

/** One for each informer; `resource` says in the log which. */
export class LagReport {
  readonly #resource: { readonly resource: string; readonly apiVersion: string };
  readonly #clock: Clock;
  readonly #log: Logger;
  /** Since when (monotonic) the copy does not follow the server; undefined while it does. */
  #behindSince: number | undefined;
  #warned = false;
  /** What the last list or watch failed with, until one succeeds. */
  lastError: string | undefined;

  constructor(resource: { readonly resource: string; readonly apiVersion: string }, clock: Clock, log: Logger) {
    this.#resource = resource;
    this.#clock = clock;
    this.#log = log;
  }

  /** The copy is not there yet. */
  begin(): void {
    this.#behindSince = this.#clock.monotonic();
  }

  inStep(): void {
    if (this.#warned) this.#log.info('list/watch works again', this.#resource);
    this.#warned = false;
    this.lastError = undefined;
    this.#behindSince = undefined;
  }

  behind(synced: boolean): void {
    this.#behindSince ??= this.#clock.monotonic();
    if (this.#warned || this.#clock.monotonic() - this.#behindSince < WARN_MS) return;
    this.#warned = true;
    this.#log.warn(synced ? 'the watch is broken' : 'not synced', {
      ...this.#resource,
      error: this.lastError ?? 'no answer yet',
    });
  }

  /** The server does not know the kind: said at once. */
  noSuchKind(): void {
    if (this.#warned) return;
    this.#warned = true;
    this.#log.warn('the API server has no such kind; waiting until it has', this.#resource);
  }
}
