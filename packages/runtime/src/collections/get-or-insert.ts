/** A part of `Map` and `WeakMap` that Node 24 lacks (their `getOrInsertComputed`). */
interface MapLike<K, V> {
  get(key: K): V | undefined;
  set(key: K, value: V): unknown;
}

/** The value of `key`; when there is none, what `make` gives for it is put there first. No value is undefined. */
export function getOrInsert<K, V>(map: MapLike<K, V>, key: K, make: (key: K) => V): V {
  let value = map.get(key);
  if (value === undefined) {
    value = make(key);
    map.set(key, value);
  }
  return value;
}
