/** A queue in which owners take turns: one with many entries waits as long for each as one with few. */
export class FairQueue<T> {
  readonly #waiting = new Map<string, T[]>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  push(owner: string, entry: T): void {
    const own = this.#waiting.get(owner);
    if (own) own.push(entry);
    else this.#waiting.set(owner, [entry]);
    this.#size++;
  }

  /** The first entry of the owner whose turn it is; that owner goes to the end. */
  shift(): T | undefined {
    for (const [owner, own] of this.#waiting) {
      const entry = own.shift();
      this.#waiting.delete(owner);
      if (own.length > 0) this.#waiting.set(owner, own);
      this.#size--;
      return entry;
    }
    return undefined;
  }
}
