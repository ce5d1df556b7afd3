/** Tells when something else keeps changing what is put back: each write heats an object up, time cools it down. */
import type { Clock } from '../../base/clock/clock.ts';

export interface FightDetector {
  /** Counts a write; true while there is a fight over the object. */
  wrote(id: string): boolean;
  /** The object was found as it should be. */
  calm(id: string): void;
  readonly fights: ReadonlySet<string>;
}

const HOT = 5;
const MINUTE_MS = 60_000;
/** Objects that are remembered. */
const MAX_REMEMBERED = 10_000;

/** Makes one. */
export function createFightDetector(clock: Clock): FightDetector {
  const heats = new Map<string, { heat: number; at: number }>();
  const fights = new Set<string>();
  return {
    fights,
    wrote(id) {
      const now = clock.monotonic();
      const last = heats.get(id) ?? { heat: 0, at: now };
      const heat = last.heat * Math.exp(-(now - last.at) / MINUTE_MS) + 1;
      heats.delete(id);
      heats.set(id, { heat, at: now });
      const oldest = heats.keys().next().value;
      if (heats.size > MAX_REMEMBERED && oldest !== undefined) heats.delete(oldest);
      if (heat >= HOT) fights.add(id);
      return fights.has(id);
    },
    calm(id) {
      fights.delete(id);
    },
  };
}
