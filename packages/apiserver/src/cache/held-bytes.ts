/**
 * Which bytes of objects are kept in memory. The newest durable revision of each object may be left on the disk and read
 * again when somebody asks: a tenant's large objects, and any objects at all of a store that outgrew the host, then take
 * a few hundred bytes each. Revisions that are not durable yet, and superseded ones, are not left: the queue and the
 * history have bounds of their own.
 */
import { nextTurn } from '@coracle/runtime/clock/next-turn';

/** Bounds, in bytes of JSON. */
export interface HeldLimits {
  /** Of all objects of at least `LARGE_OBJECT` together. */
  readonly large: number;
  /** Of all smaller ones together. */
  readonly small: number;
}

export const DEFAULT_HELD: HeldLimits = { large: 64 * 1024 * 1024, small: 1024 * 1024 * 1024 };

/** Objects of that many bytes are rare, and worth a read. */
export const LARGE_OBJECT = 64 * 1024;

/** What may leave its bytes on the disk. */
export interface Leavable {
  readonly revision: number;
  /** Bytes, held or not. */
  readonly size: number;
  readonly isHeld: boolean;
  /** Lets the bytes go. */
  leave(): void;
  /** Reads them again, for good. */
  stay(): void;
}

/** First in, first out, by bytes; what is read again comes in anew. */
class Bounded {
  readonly #limit: number;
  readonly #members = new Set<Leavable>();
  #total = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get total(): number {
    return this.#total;
  }

  add(member: Leavable): void {
    if (this.#members.has(member)) return;
    this.#members.add(member);
    this.#total += member.size;
    for (const oldest of this.#members) {
      if (this.#total <= this.#limit) return;
      this.#members.delete(oldest);
      this.#total -= oldest.size;
      oldest.leave();
    }
  }

  delete(member: Leavable): void {
    if (this.#members.delete(member)) this.#total -= member.size;
  }
}

/** Superseded while its bytes lay on the disk only: they go from there with the compaction of `by`. */
interface Endangered {
  readonly member: WeakRef<Leavable>;
  readonly by: number;
}

export class HeldBytes {
  readonly #large: Bounded;
  readonly #small: Bounded;
  /** In the order of `by`. Bounded by the retained log: compaction empties it. */
  #endangered: Endangered[] = [];

  constructor(limits: HeldLimits) {
    this.#large = new Bounded(limits.large);
    this.#small = new Bounded(limits.small);
  }

  /** Bytes in memory that may be left. */
  get bytes(): number {
    return this.#large.total + this.#small.total;
  }

  /** The newest durable revision of an object, its bytes in memory: they may be let go from now on, also at once. */
  hold(member: Leavable): void {
    (member.size >= LARGE_OBJECT ? this.#large : this.#small).add(member);
  }

  /** It is superseded by revision `by`: what is in memory stays as long as somebody needs it. */
  release(member: Leavable, by: number): void {
    (member.size >= LARGE_OBJECT ? this.#large : this.#small).delete(member);
    if (!member.isHeld) this.#endangered.push({ member: new WeakRef(member), by });
  }

  /** Before rows that were superseded at or below `upTo` go from the disk: reads those that somebody still has. */
  async compacting(upTo: number): Promise<void> {
    const going = this.#endangered.filter(({ by }) => by <= upTo);
    this.#endangered = this.#endangered.filter(({ by }) => by > upTo);
    for (const { member } of going) {
      const alive = member.deref();
      if (alive === undefined || alive.isHeld) continue;
      alive.stay();
      await nextTurn();
    }
  }
}
