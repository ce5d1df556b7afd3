/**
 * Objects by keys, over every state that is, or may become, the stored one: what is durable, and what has been decided
 * and is on its way. A key leads to an object as long as one of these states has it. So whoever asks before a write that
 * loosens is durable is answered as if it had never been, and one that tightens counts from its decision on: an answer
 * "none" stays true whatever becomes of the writes that are under way.
 */

/** A state of an object. */
export interface IndexedState<T> {
  readonly revision: number;
  readonly object: T;
}

export interface IndexedObject<T> {
  readonly namespace: string;
  readonly name: string;
  /** The state that has the key that was asked for. */
  readonly object: T;
  /** What the state has under that key. */
  readonly value: string;
  /** That state is not durable yet. */
  readonly pending: boolean;
}

/** Some objects, and how many. */
export interface IndexedObjects<T> extends Iterable<IndexedObject<T>> {
  readonly size: number;
  /** The first `count` by namespace and name of the first `among` that come. */
  first(count: number, among: number): IndexedObject<T>[];
}

/** Keys of a state, each with a value that is handed out with it; undefined: the state is not indexed at all. */
export type KeysOf<T> = (object: T, place: Place) => ReadonlyMap<string, string> | undefined;

export interface Place {
  readonly namespace: string;
  readonly name: string;
}

interface Entry<T> extends IndexedState<T> {
  readonly keys: ReadonlyMap<string, string>;
  durable: boolean;
}

class Kept<T> {
  readonly namespace: string;
  readonly name: string;
  /** Oldest first. One, but while writes of the object are under way. */
  entries: Entry<T>[] = [];

  constructor({ namespace, name }: Place) {
    this.namespace = namespace;
    this.name = name;
  }

  /** The oldest that has the key: the durable one, where that has it. */
  with(key: string): Entry<T> | undefined {
    return this.entries.find(({ keys }) => keys.has(key));
  }
}

export class StateIndex<T> {
  readonly #keysOf: KeysOf<T>;
  readonly #objects = new Map<string, Kept<T>>();
  /** One object without a set of its own: most keys have just one. */
  readonly #byKey = new Map<string, Kept<T> | Set<Kept<T>>>();

  constructor(keysOf: KeysOf<T>) {
    this.#keysOf = keysOf;
  }

  /** A state that was decided. */
  decided(place: Place, state: IndexedState<T>): void {
    this.#add(place, state, false);
  }

  /** A state that was decided is durable, and with it all before it are gone; or it failed. Also of one that deletes. */
  settled(place: Place, revision: number, durable: boolean): void {
    const kept = this.#objects.get(idOf(place));
    if (!kept) return;
    const left = kept.entries.filter((each) => (durable ? each.revision >= revision : each.revision !== revision));
    if (durable) for (const each of left) if (each.revision === revision) each.durable = true;
    if (left.length !== kept.entries.length) this.#keep(place, kept, left);
  }

  /** The one state there is, where nothing is ever under way. */
  set(place: Place, state: IndexedState<T>): void {
    this.#add(place, state, true);
    this.settled(place, state.revision, true);
  }

  /** The object is gone. */
  delete(place: Place): void {
    const kept = this.#objects.get(idOf(place));
    if (kept) this.#keep(place, kept, []);
  }

  /** The objects that have a key. */
  withKey(key: string): IndexedObjects<T> {
    const found = this.#byKey.get(key);
    if (found === undefined) return NONE;
    const all = found instanceof Kept ? [found] : found;
    return {
      size: found instanceof Kept ? 1 : found.size,
      *[Symbol.iterator]() {
        for (const kept of all) yield shown(kept, key);
      },
      first: (count, among) => firstOf(all, count, among).map((kept) => shown(kept, key)),
    };
  }

  /** One object, if it has the key. */
  get(place: Place, key: string): IndexedObject<T> | undefined {
    const kept = this.#objects.get(idOf(place));
    return kept?.with(key) && shown(kept, key);
  }

  #add(place: Place, state: IndexedState<T>, durable: boolean): void {
    const keys = this.#keysOf(state.object, place);
    const known = this.#objects.get(idOf(place));
    // A state that is not indexed matters only by taking the place of others, once it is durable.
    if (!keys) return;
    const kept = known ?? new Kept<T>(place);
    const last = kept.entries.at(-1);
    const same = last && haveSameKeys(last.keys, keys) ? last.keys : keys;
    this.#keep(place, kept, [...kept.entries, { revision: state.revision, object: state.object, keys: same, durable }]);
  }

  #keep(place: Place, kept: Kept<T>, entries: Entry<T>[]): void {
    const before = kept.entries;
    kept.entries = entries;
    const had = new Set(before.map(({ keys }) => keys));
    const has = new Set(entries.map(({ keys }) => keys));
    for (const keys of has) if (!had.has(keys)) for (const key of keys.keys()) this.#link(key, kept);
    for (const keys of had)
      if (!has.has(keys)) for (const key of keys.keys()) if (kept.with(key) === undefined) this.#unlink(key, kept);
    if (entries.length === 0) this.#objects.delete(idOf(place));
    else if (before.length === 0) this.#objects.set(idOf(place), kept);
  }

  #link(key: string, kept: Kept<T>): void {
    const found = this.#byKey.get(key);
    if (found === undefined) this.#byKey.set(key, kept);
    else if (found instanceof Set) found.add(kept);
    else if (found !== kept) this.#byKey.set(key, new Set([found, kept]));
  }

  #unlink(key: string, kept: Kept<T>): void {
    const found = this.#byKey.get(key);
    if (found instanceof Set) {
      found.delete(kept);
      if (found.size === 0) this.#byKey.delete(key);
    } else if (found === kept) this.#byKey.delete(key);
  }
}

const NONE: IndexedObjects<never> = { size: 0, *[Symbol.iterator]() {}, first: () => [] };

function firstOf<P extends Place>(all: Iterable<P>, count: number, among: number): P[] {
  const first: P[] = [];
  let seen = 0;
  for (const each of all) {
    if (seen++ === among) break;
    const last = first[count - 1];
    if (last && !isBefore(each, last)) continue;
    let at = first.length;
    while (at > 0 && isBefore(each, first[at - 1]!)) at--;
    first.splice(at, 0, each);
    if (first.length > count) first.pop();
  }
  return first;
}

const isBefore = (a: Place, b: Place): boolean =>
  a.namespace === b.namespace ? a.name < b.name : a.namespace < b.namespace;

const idOf = ({ namespace, name }: Place): string => `${namespace}/${name}`;

function shown<T>(kept: Kept<T>, key: string): IndexedObject<T> {
  const { namespace, name } = kept;
  const entry = kept.with(key)!;
  return { namespace, name, object: entry.object, value: entry.keys.get(key)!, pending: !entry.durable };
}

function haveSameKeys(a: ReadonlyMap<string, string>, b: ReadonlyMap<string, string>): boolean {
  if (a.size !== b.size) return false;
  for (const [key, value] of a) if (b.get(key) !== value) return false;
  return true;
}
