/** Moments in which a process has nothing else to do: for what nobody waits for. */
import { nextTurn } from './next-turn.ts';

/** A turn of the event loop in which nobody had much to do. */
const SHORT_TURN_MS = 1;
const PAUSE_MS = 20;

/** Resolves in such a moment, at the latest after `ms` and a pause, or when the signal aborts; never rejects. */
export async function untilIdle(
  clock: { monotonic(): number; sleep(ms: number, signal: AbortSignal): Promise<void> },
  ms: number,
  signal: AbortSignal,
): Promise<void> {
  const latest = clock.monotonic() + ms;
  for (let asked = clock.monotonic(); asked < latest && !signal.aborted; asked = clock.monotonic()) {
    await nextTurn();
    if (clock.monotonic() - asked < SHORT_TURN_MS) return;
    await clock.sleep(PAUSE_MS, signal).catch(() => {});
  }
}
