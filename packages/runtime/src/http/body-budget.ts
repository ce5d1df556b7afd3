/**
 * Bytes of request bodies in flight, all together and for each of those who send them. Everybody may hold as much as is
 * still free: one alone gets half, two a third each, and whoever comes next always finds a part.
 */

/** `owner-full`: this one holds its part already. `full`: nobody's body fits at present. */
export type BodyGrant = 'granted' | 'owner-full' | 'full';

export class BodyBudget {
  readonly #total: number;
  readonly #held = new Map<string, number>();
  #used = 0;

  /** `total`: bytes of all bodies that may be in memory at once. */
  constructor(total: number) {
    this.#total = total;
  }

  /** Bytes that are held now. */
  get used(): number {
    return this.#used;
  }

  take(owner: string, bytes: number): BodyGrant {
    const free = this.#total - this.#used;
    if (bytes > free) return 'full';
    const held = this.#held.get(owner) ?? 0;
    if (held > 0 && held + bytes > free) return 'owner-full';
    this.#used += bytes;
    this.#held.set(owner, held + bytes);
    return 'granted';
  }

  /** Gives back what was taken. */
  give(owner: string, bytes: number): void {
    this.#used -= bytes;
    const left = (this.#held.get(owner) ?? 0) - bytes;
    if (left > 0) this.#held.set(owner, left);
    else this.#held.delete(owner);
  }
}
