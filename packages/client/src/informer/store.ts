/**
 * What an informer holds: frozen objects by key, with indexes. One writer (`StoreWriter`, kept by the informer), any
 * number of readers (`Store`). Bounded by the objects the server has.
 */

import { deepFreeze } from '@coracle/apimachinery/meta/deep-freeze';
import type { DeepReadonly, KubeObject, ObjectKey, ReadonlyObject } from '@coracle/apimachinery/meta/object';
import { keyOf, keyText } from '@coracle/apimachinery/meta/object';
import { getOrInsert } from '@coracle/runtime/collections/get-or-insert';
import { isOlder } from './resource-version.ts';
import type { StoreChange as WatchChange } from './watch-state.ts';

/** The values under which an object is found; computed once per version of the object. */
export type IndexFunction<T extends KubeObject> = (object: DeepReadonly<T>) => readonly string[];

/** What a reader hears. */
export type Change<T extends KubeObject> =
  | { readonly type: 'added'; readonly object: DeepReadonly<T>; readonly previous?: undefined }
  | { readonly type: 'modified'; readonly object: DeepReadonly<T>; readonly previous: DeepReadonly<T> }
  /** `object` is the last state known, `previous` the state the store held. */
  | { readonly type: 'deleted'; readonly object: DeepReadonly<T>; readonly previous: DeepReadonly<T> };

export interface Store<T extends KubeObject> {
  get(key: ObjectKey): DeepReadonly<T> | undefined;
  /** All objects, or those of one namespace; in no particular order. */
  list(namespace?: string): readonly DeepReadonly<T>[];
  /** The objects the index function filed under `value`. Throws TypeError for an unknown index. */
  byIndex(name: string, value: string): readonly DeepReadonly<T>[];
}

interface Index<T extends KubeObject> {
  readonly compute: IndexFunction<T>;
  /** Value -> keys. */
  readonly keys: Map<string, Set<string>>;
}

const NAMESPACE = 'namespace';

export class StoreWriter<T extends KubeObject> implements Store<T> {
  readonly #objects = new Map<string, DeepReadonly<T>>();
  readonly #indexes = new Map<string, Index<T>>();
  #resourceVersion = '';

  constructor(indexes: Readonly<Record<string, IndexFunction<T>>> = {}) {
    this.addIndex(NAMESPACE, (object) => [(object as ReadonlyObject).metadata.namespace ?? '']);
    for (const [name, compute] of Object.entries(indexes)) this.addIndex(name, compute);
  }

  get(key: ObjectKey): DeepReadonly<T> | undefined {
    return this.#objects.get(keyText(key));
  }

  list(namespace?: string): readonly DeepReadonly<T>[] {
    return namespace === undefined ? [...this.#objects.values()] : this.byIndex(NAMESPACE, namespace);
  }

  byIndex(name: string, value: string): readonly DeepReadonly<T>[] {
    const index = this.#indexes.get(name);
    if (!index) throw new TypeError(`Cannot read index: no index "${name}"`);
    const found: DeepReadonly<T>[] = [];
    for (const key of index.keys.get(value) ?? []) found.push(this.#objects.get(key)!);
    return found;
  }

  /** Adds an index; one of that name stays as it is. */
  addIndex(name: string, compute: IndexFunction<T>): void {
    if (this.#indexes.has(name)) return;
    const index: Index<T> = { compute, keys: new Map() };
    this.#indexes.set(name, index);
    for (const [key, object] of this.#objects) file(index, key, object);
  }

  /**
   * Takes a change over, object by object, and says what readers must hear of each: undefined when it is old news. It has
   * to be gone through to its end; what was delivered is in the store, what follows is not yet.
   */
  *take(change: WatchChange<T>): Generator<Change<T> | undefined, void, void> {
    switch (change.type) {
      case 'apply':
        return yield* this.#apply(change.object);
      case 'delete':
        return yield* this.#delete(textOf(change.object), change.object);
      case 'replace':
        return yield* this.#replace(change.objects, change.resourceVersion);
    }
  }

  #apply(object: T): Change<T>[] {
    const key = textOf(object);
    const previous = this.#objects.get(key);
    // Deleted and made anew while nobody looked: two objects, so two changes.
    if (previous && (previous as ReadonlyObject).metadata.uid !== object.metadata.uid) {
      return [...this.#delete(key, previous), ...this.#apply(object)];
    }
    const frozen = deepFreeze(object) as DeepReadonly<T>;
    this.#objects.set(key, frozen);
    for (const index of this.#indexes.values()) {
      if (previous) unfile(index, key, previous);
      file(index, key, frozen);
    }
    if (!previous) return [{ type: 'added', object: frozen }];
    return [{ type: 'modified', object: frozen, previous }];
  }

  #delete(key: string, object: T | DeepReadonly<T>): Change<T>[] {
    const previous = this.#objects.get(key);
    if (!previous) return [];
    this.#objects.delete(key);
    for (const index of this.#indexes.values()) unfile(index, key, previous);
    return [{ type: 'deleted', object: deepFreeze(object) as DeepReadonly<T>, previous }];
  }

  /** The whole state at one version: what differs is delivered, what is missing was deleted while nobody looked. */
  *#replace(objects: Iterable<T>, resourceVersion: string): Generator<Change<T> | undefined, void, void> {
    // A version that went back is another server's history (a restored backup): then nothing held counts as newer.
    const sameHistory = !isOlder(resourceVersion, this.#resourceVersion);
    this.#resourceVersion = resourceVersion;
    const present = new Set<string>();
    for (const object of objects) {
      const key = textOf(object);
      present.add(key);
      const previous = this.#objects.get(key) as ReadonlyObject | undefined;
      if (previous && previous.metadata.uid === object.metadata.uid) {
        const held = previous.metadata.resourceVersion ?? '';
        const offered = object.metadata.resourceVersion ?? '';
        if (held === offered || (sameHistory && isOlder(offered, held))) {
          yield undefined;
          continue;
        }
      }
      yield* this.#apply(object);
    }
    for (const key of [...this.#objects.keys()]) {
      if (!present.has(key)) yield* this.#delete(key, this.#objects.get(key)!);
    }
  }
}

const textOf = (object: KubeObject): string => keyText(keyOf(object));

function file<T extends KubeObject>(index: Index<T>, key: string, object: DeepReadonly<T>): void {
  for (const value of index.compute(object)) {
    getOrInsert(index.keys, value, () => new Set()).add(key);
  }
}

function unfile<T extends KubeObject>(index: Index<T>, key: string, object: DeepReadonly<T>): void {
  for (const value of index.compute(object)) {
    const keys = index.keys.get(value);
    keys?.delete(key);
    if (keys?.size === 0) index.keys.delete(value);
  }
}
