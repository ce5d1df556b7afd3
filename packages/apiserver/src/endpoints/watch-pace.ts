/**
 * When the readers of watches are written to. To few of them each event goes out as it is published. A write to a
 * stream costs the same for one event as for ten, so where many watch, what is published within a short pause goes out
 * together: a thousand readers of 200 events a second are then 20,000 writes a second and not 200,000.
 */
import { joinBytes } from '@coracle/apimachinery/meta/join-bytes';
import type { Clock } from '@coracle/runtime/clock/clock';

/** Up to this many readers in one round, the next round may follow at once. */
const FEW_READERS = 64;
/** With more of them, the pause until the next round: so long for each, and in all at most. */
const PAUSE_MS_PER_READER = 0.05;
const MAX_PAUSE_MS = 100;

export type WatchPace = ReturnType<typeof createWatchPace>;

/** Makes the pace of one server's watches. */
export function createWatchPace(clock: Clock) {
  let waiting: (() => void)[] = [];
  let asked = false;
  let notBefore = Number.NEGATIVE_INFINITY;
  let lastParts: readonly Uint8Array[] = [];
  let lastJoined: Uint8Array = new Uint8Array(0);

  const round = (): void => {
    asked = false;
    const due = waiting;
    waiting = [];
    for (const flush of due) flush();
    // Held no longer than they are of use.
    lastParts = [];
    lastJoined = new Uint8Array(0);
    const pause = due.length <= FEW_READERS ? 0 : Math.min(MAX_PAUSE_MS, due.length * PAUSE_MS_PER_READER);
    notBefore = clock.monotonic() + pause;
  };

  return {
    /**
     * Calls `flush` once, in a later turn of this moment or after the pause. Whoever waits is called in the order of
     * asking. Ask again only after it was called.
     */
    ask(flush: () => void): void {
      waiting.push(flush);
      if (asked) return;
      asked = true;
      const pause = notBefore - clock.monotonic();
      if (pause > 0) clock.schedule(pause, round);
      else queueMicrotask(round);
    },
    /**
     * The parts one after the other. What was joined last is handed out again when the parts are the same ones, as they
     * are for readers of the same resource. Nobody may change the result.
     */
    join(parts: readonly Uint8Array[]): Uint8Array {
      if (parts.length === 1) return parts[0]!;
      if (parts.length === lastParts.length && parts.every((part, i) => part === lastParts[i])) return lastJoined;
      lastParts = parts;
      lastJoined = joinBytes(parts);
      return lastJoined;
    },
  };
}
