/** Work on several keys at a time, one after the other where two share a key. */
export interface KeyedLock {
  /** Runs `work` once nobody else works on any of `keys`, in the order of the calls. */
  run<T>(keys: readonly string[], work: () => Promise<T>): Promise<T>;
}

/** Makes a lock; those who wait are held in memory, one promise each. */
export function createKeyedLock(): KeyedLock {
  const tails = new Map<string, Promise<unknown>>();
  return {
    run(keys, work) {
      const unique = [...new Set(keys)];
      // All keys are taken in one turn: two calls cannot wait for each other.
      const before = Promise.all(unique.map((key) => tails.get(key)));
      const result = before.then(work);
      const tail = result.catch(() => {});
      for (const key of unique) tails.set(key, tail);
      void tail.then(() => {
        for (const key of unique) if (tails.get(key) === tail) tails.delete(key);
      });
      return result;
    },
  };
}
