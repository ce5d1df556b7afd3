/**
 * Who may stay connected. A connection that has brought no credential stays for half a minute, and all of these together
 * have a small part of the room: beyond it the oldest of the address that has most goes. The others share the rest, so
 * that nobody, with a credential or without, keeps the next one out.
 */
import type { Socket } from 'node:net';

export interface ConnectionLimits {
  /** Connections that have brought a credential. */
  readonly identified: number;
  /** Those of one owner among them. */
  readonly ofOwner: number;
  /** Connections that have brought none. */
  readonly anonymous: number;
  /** TLS handshakes under way. */
  readonly handshakes: number;
}

export const CONNECTION_LIMITS: ConnectionLimits = {
  identified: 9000,
  ofOwner: 3000,
  anonymous: 1000,
  handshakes: 1000,
};

/** One connection past its handshake. */
export interface Connection {
  /** A request begins; the returned function says that it is over. */
  begin(): () => void;
  /** It has brought a credential, and whose. The first counts. */
  identify(owner: string): void;
}

export interface ConnectionEnd {
  /** Lets what is under way finish, and ends. */
  readonly close: () => void;
  readonly destroy: () => void;
}

/** Sweeps after which a connection without a credential is closed, and after which it is cut. */
const CLOSE_AFTER = 6;
const CUT_AFTER = 18;
/** Milliseconds between two sweeps. */
export const SWEEP_MS = 5000;

type OnIdentified = (entry: Entry, owner: string) => void;

class Entry implements Connection {
  readonly address: string;
  readonly end: ConnectionEnd;
  readonly #onIdentified: OnIdentified;
  owner: string | undefined;
  busy = 0;
  age = 0;

  constructor(address: string, end: ConnectionEnd, onIdentified: OnIdentified) {
    this.address = address;
    this.end = end;
    this.#onIdentified = onIdentified;
  }

  begin(): () => void {
    this.busy++;
    return () => {
      this.busy--;
    };
  }

  identify(owner: string): void {
    if (this.owner === undefined) this.#onIdentified(this, owner);
  }
}

/** Sets of something by a name, in the order in which they came. */
class Groups {
  readonly #sets = new Map<string, Set<Entry>>();
  size = 0;

  add(name: string, entry: Entry): void {
    const set = this.#sets.get(name);
    if (set) set.add(entry);
    else this.#sets.set(name, new Set([entry]));
    this.size++;
  }

  delete(name: string, entry: Entry): void {
    const set = this.#sets.get(name);
    if (!set?.delete(entry)) return;
    this.size--;
    if (set.size === 0) this.#sets.delete(name);
  }

  sizeOf(name: string): number {
    return this.#sets.get(name)?.size ?? 0;
  }

  /** The oldest of the largest set (or of the one named), one that does nothing if there is such a one. */
  oldest(name?: string): Entry | undefined {
    let largest: Set<Entry> | undefined = name === undefined ? undefined : this.#sets.get(name);
    if (name === undefined) for (const set of this.#sets.values()) if (set.size > (largest?.size ?? 0)) largest = set;
    let first: Entry | undefined;
    for (const entry of largest ?? []) {
      if (entry.busy === 0) return entry;
      first ??= entry;
    }
    return first;
  }

  *all(): Generator<Entry, void, void> {
    for (const set of this.#sets.values()) yield* set;
  }
}

export class Connections {
  readonly #limits: ConnectionLimits;
  readonly #anonymous = new Groups();
  readonly #identified = new Groups();
  readonly #handshakes = new Set<Socket>();

  constructor(limits: Partial<ConnectionLimits> = {}) {
    this.#limits = { ...CONNECTION_LIMITS, ...limits };
  }

  get handshakes(): number {
    return this.#handshakes.size;
  }

  /** A handshake begins. Beyond the bound the oldest is given up. */
  handshake(socket: Socket): void {
    this.#handshakes.add(socket);
    socket.on('close', () => this.#handshakes.delete(socket));
    if (this.#handshakes.size <= this.#limits.handshakes) return;
    const [oldest] = this.#handshakes;
    this.#handshakes.delete(oldest!);
    oldest!.destroy();
  }

  /** A handshake is over: `port` is the far end's, by which its socket is known. */
  established(socket: Socket, end: ConnectionEnd): Connection {
    const { remoteAddress: address = '', remotePort } = socket;
    for (const one of this.#handshakes) {
      if (one.remotePort !== remotePort || one.remoteAddress !== socket.remoteAddress) continue;
      this.#handshakes.delete(one);
      break;
    }
    const entry = new Entry(address, end, (known, owner) => this.#identify(known, owner));
    this.#anonymous.add(address, entry);
    socket.on('close', () => {
      this.#anonymous.delete(address, entry);
      if (entry.owner !== undefined) this.#identified.delete(entry.owner, entry);
    });
    if (this.#anonymous.size > this.#limits.anonymous) this.#drop(this.#anonymous.oldest());
    return entry;
  }

  /** Another interval has passed. */
  sweep(): void {
    for (const entry of this.#anonymous.all()) {
      entry.age++;
      if (entry.age >= CUT_AFTER) this.#drop(entry);
      else if (entry.age === CLOSE_AFTER) entry.end.close();
      else if (entry.age > CLOSE_AFTER && entry.busy === 0) this.#drop(entry);
    }
  }

  #identify(entry: Entry, owner: string): void {
    this.#anonymous.delete(entry.address, entry);
    entry.owner = owner;
    this.#identified.add(owner, entry);
    const { ofOwner, identified } = this.#limits;
    if (this.#identified.sizeOf(owner) > ofOwner) this.#drop(this.#identified.oldest(owner));
    else if (this.#identified.size > identified) this.#drop(this.#identified.oldest());
  }

  #drop(entry: Entry | undefined): void {
    if (!entry) return;
    this.#anonymous.delete(entry.address, entry);
    if (entry.owner !== undefined) this.#identified.delete(entry.owner, entry);
    entry.end.destroy();
  }
}
