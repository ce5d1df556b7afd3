/** Short-lived tokens of a component, renewed before they expire and when the server no longer knows them. */
import type { Clock } from '@coracle/runtime/clock/clock';
import type { Logger } from '@coracle/runtime/log/log';

export interface MintedToken {
  readonly token: string;
  /** Milliseconds since the epoch. */
  readonly expires: number;
}

/** Lifetime asked for, in seconds. */
export const COMPONENT_TOKEN_SECONDS = 3600;
const RETRY_MS = 10_000;
/**
 * Longest until it is looked at again. By the wall clock, at which tokens end: a host that slept finds a timer late by
 * all that time.
 */
const LOOK_MS = 60_000;
/** A server that refuses whatever it gives is not asked for each request. */
const REFUSED_MS = 5000;

/** Mints the first token and renews it when four fifths of its life are over. Rejects when the first cannot be minted. */
export async function createTokenSource(
  mint: () => Promise<MintedToken>,
  options: { readonly clock: Clock; readonly log: Logger },
) {
  const { clock, log } = options;
  let held = await mint();
  let mintedAt = clock.now();
  let cancel = (): void => {};
  let isStopped = false;
  let asking: Promise<void> | undefined;
  let askedAt = Number.NEGATIVE_INFINITY;

  const ask = (): Promise<void> => {
    asking ??= (async () => {
      askedAt = clock.monotonic();
      try {
        held = await mint();
        mintedAt = clock.now();
      } catch (error) {
        log.warn('component token could not be renewed', {
          error: error instanceof Error ? error.message : String(error),
        });
      } finally {
        asking = undefined;
      }
    })();
    return asking;
  };
  const dueIn = (): number => mintedAt + (held.expires - mintedAt) * 0.8 - clock.now();
  const plan = (): void => {
    if (isStopped) return;
    cancel = clock.schedule(Math.min(LOOK_MS, Math.max(RETRY_MS, dueIn())), () => {
      if (dueIn() <= 0) void ask().then(plan);
      else plan();
    });
  };
  plan();
  return {
    /** The token to send now. */
    current: (): string => held.token,
    /**
     * Called when the server refused a token: resolves to a newer one, or to the same when none was to be had. Callers at
     * the same time share one request.
     */
    async renew(refused: string): Promise<string> {
      if (held.token !== refused) return held.token;
      if (!asking && clock.monotonic() - askedAt < REFUSED_MS) return held.token;
      await ask();
      return held.token;
    },
    stop() {
      isStopped = true;
      cancel();
    },
  };
}
