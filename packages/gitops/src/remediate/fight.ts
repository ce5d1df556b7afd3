/** Tells when something else keeps changing what is put back: each write heats an object up, time cools it down. */
import type { Clock } from '@coracle/runtime/clock/clock';

export interface FightDetector {
  /** Counts a write; true while there is a fight over the object. */
  wrote(id: string): boolean;
  /** The object was found as it should be: a fight is over once it has cooled down. */
  calm(id: string): void;
  readonly fights: ReadonlySet<string>;
}

const HOT = 5;
const WARM = 3;
/** Heat falls by e in this time; after it a fight may be over. */
export const COOLING_MS = 60_000;
/** Objects that are remembered. */
const MAX_REMEMBERED = 10_000;

/** Makes one. */
export function createFightDetector(clock: Pick<Clock, 'monotonic'>): FightDetector {
  const heats = new Map<string, { heat: number; at: number }>();
  const fights = new Set<string>();
  const heatOf = (id: string, now: number): number => {
    const last = heats.get(id);
    return last ? last.heat * Math.exp(-(now - last.at) / COOLING_MS) : 0;
  };
  return {
    fights,
    wrote(id) {
      const now = clock.monotonic();
      const heat = heatOf(id, now) + 1;
      heats.delete(id);
      heats.set(id, { heat, at: now });
      const oldest = heats.keys().next().value;
      if (heats.size > MAX_REMEMBERED && oldest !== undefined) heats.delete(oldest);
      if (heat >= HOT) fights.add(id);
      return fights.has(id);
    },
    calm(id) {
      // What is written is seen again at once, and is as it should be: that alone is no end.
      if (heatOf(id, clock.monotonic()) < WARM) fights.delete(id);
    },
  };
}
