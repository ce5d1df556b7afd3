/** Short-lived tokens of a component, renewed before they expire. */
import type { Clock } from '../../base/clock/clock.ts';
import type { Logger } from '../../base/log/log.ts';

export interface MintedToken {
  readonly token: string;
  /** Milliseconds since the epoch. */
  readonly expires: number;
}

export interface TokenSource {
  /** The token to send now. */
  current(): string;
  stop(): void;
}

/** Lifetime asked for, in seconds. */
export const COMPONENT_TOKEN_SECONDS = 3600;
const RETRY_MS = 10_000;

/** Mints the first token and renews it when four fifths of its life are over. Rejects when the first cannot be minted. */
export async function createTokenSource(
  mint: () => Promise<MintedToken>,
  options: { readonly clock: Clock; readonly log: Logger },
): Promise<TokenSource> {
  const { clock, log } = options;
  let held = await mint();
  let cancel = (): void => {};
  const plan = (ms: number): void => {
    cancel = clock.schedule(ms, () => {
      mint().then(
        (next) => {
          held = next;
          plan(renewIn(next));
        },
        (error: unknown) => {
          log.warn('component token could not be renewed', {
            error: error instanceof Error ? error.message : String(error),
          });
          plan(RETRY_MS);
        },
      );
    });
  };
  const renewIn = ({ expires }: MintedToken): number => Math.max(RETRY_MS, (expires - clock.now()) * 0.8);
  plan(renewIn(held));
  return { current: () => held.token, stop: () => cancel() };
}
