/**
 * The first moments of a control plane: what starts beside the API server waits while clients are being answered, so that
 * their first requests do not pay for it. It waits for a bounded time, however many they are.
 */
import type { Clock } from '@coracle/runtime/clock/clock';
import { nextTurn } from '@coracle/runtime/clock/next-turn';
import type { ApiHandler } from '@coracle/runtime/http/seam';

/** From the first that asks for its turn: later nobody waits for clients any more. */
export const BOUND_MS = 2000;
/** From one answer to the next request of a client that has more to ask. */
export const QUIET_MS = 10;

export function createClientsFirst(clock: Clock) {
  let asking = 0;
  let quietFrom = 0;
  let hasBegun = false;
  let isOver = false;
  let last = Promise.resolve();
  const isQuiet = (): boolean => isOver || (asking === 0 && clock.monotonic() >= quietFrom);
  const answered = (): void => {
    asking--;
    quietFrom = clock.monotonic() + QUIET_MS;
  };
  const takeTurn = async (signal: AbortSignal): Promise<void> => {
    await nextTurn();
    while (!isQuiet() && !signal.aborted) await clock.sleep(QUIET_MS, signal).catch(() => {});
  };
  return {
    /** `serve`, with its requests counted until they are answered: a watch is answered when its stream begins. */
    before:
      (serve: ApiHandler): ApiHandler =>
      (request) => {
        if (isOver) return serve(request);
        asking++;
        const response = serve(request);
        response.then(answered, answered);
        return response;
      },
    /** Resolves in a turn of the event loop of its own, in the order asked, once no client is being answered; never rejects. */
    turn(signal: AbortSignal): Promise<void> {
      if (!hasBegun)
        clock.schedule(BOUND_MS, () => {
          isOver = true;
        });
      hasBegun = true;
      last = last.then(() => takeTurn(signal));
      return last;
    },
  };
}
