/** A map that forgets its oldest entries past a bound: for caches keyed by what clients send. */
export class BoundedMap<K, V> {
  readonly #entries = new Map<K, V>();
  readonly #bound: number;
  constructor(bound: number) {
    this.#bound = bound;
  }
  get(key: K): V | undefined {
    return this.#entries.get(key);
  }
  set(key: K, value: V): void {
    this.#entries.delete(key);
    this.#entries.set(key, value);
    if (this.#entries.size > this.#bound) this.#entries.delete(this.#entries.keys().next().value as K);
  }
  delete(key: K): void {
    this.#entries.delete(key);
  }
}
