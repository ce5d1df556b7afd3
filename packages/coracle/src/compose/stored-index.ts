/** An index over what the embedded server stores, kept by watches. */
import type { ObjectStore, StoredObject } from '@coracle/apiserver/cache/object-store';
import { getOrInsert } from '@coracle/runtime/collections/get-or-insert';

export interface Entries<V> {
  readonly keys: readonly string[];
  readonly value: V;
}

/** Begins to keep an index of the objects of these prefixes (`group/resource`); `observe` is called for each that is stored. */
export function indexStored<V>(
  store: Pick<ObjectStore, 'list' | 'watch' | 'revision'>,
  prefixes: readonly string[],
  entriesOf: (item: StoredObject) => Entries<V>,
  observe?: (entries: Entries<V>) => void,
) {
  /** Key > object > value. */
  const index = new Map<string, Map<string, V>>();
  const textOf = ({ prefix, namespace, name }: StoredObject): string => `${prefix}/${namespace}/${name}`;
  const put = (item: StoredObject): void => {
    const entries = entriesOf(item);
    for (const key of entries.keys) getOrInsert(index, key, () => new Map()).set(textOf(item), entries.value);
    observe?.(entries);
  };
  const drop = (item: StoredObject): void => {
    for (const key of entriesOf(item).keys) {
      const known = index.get(key);
      known?.delete(textOf(item));
      if (known?.size === 0) index.delete(key);
    }
  };
  const watches = prefixes.map((prefix) => {
    for (const item of store.list(prefix).items) put(item);
    return store.watch(prefix, store.revision(), (changes) => {
      for (const { type, previous, current } of changes) {
        if (previous) drop(previous);
        if (type !== 'DELETED') put(current);
      }
    });
  });
  return {
    /** The values of the objects that stand under the key, in the order in which they came. */
    get: (key: string): Iterable<V> => index.get(key)?.values() ?? [],
    stop() {
      for (const watch of watches) watch.stop();
    },
  };
}
