/** Who hears of writes as they are decided, by prefix. */
import type { Change, StoreObserver } from './object-store.ts';

export class WriteObservers {
  readonly #observers = new Map<string, readonly StoreObserver[]>();

  add(prefix: string, observer: StoreObserver): { stop(): void } {
    this.#observers.set(prefix, [...(this.#observers.get(prefix) ?? []), observer]);
    return {
      stop: () => {
        const left = (this.#observers.get(prefix) ?? []).filter((each) => each !== observer);
        if (left.length > 0) this.#observers.set(prefix, left);
        else this.#observers.delete(prefix);
      },
    };
  }

  decided(change: Change): void {
    const observers = this.#observers.get(change.current.prefix);
    if (observers) for (const observer of observers) observer.decided(change);
  }

  settled(writes: readonly { readonly change: Change }[], durable: boolean): void {
    if (this.#observers.size === 0) return;
    for (const { change } of writes) {
      const observers = this.#observers.get(change.current.prefix);
      if (observers) for (const observer of observers) observer.settled(change, durable);
    }
  }
}
