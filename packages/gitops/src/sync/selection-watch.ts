/** Tells when NamespaceSelectors of mode dynamic mean other namespaces than they did at the last attempt. */
import type { LabelSelector } from '@coracle/apimachinery/selector/label-selector';
import type { Clock } from '@coracle/runtime/clock/clock';
import { type LiveNamespace, selectionText } from '../hierarchy/select-namespaces.ts';

/** Between a change of namespaces and the look at what selectors mean now, for those that come together. */
const SETTLE_MS = 500;

export class SelectionWatch {
  readonly #clock: Clock;
  readonly #live: () => readonly LiveNamespace[];
  readonly #wake: () => void;
  #selectors: readonly LabelSelector[] = [];
  #selected = '';
  #isDue = false;

  constructor(clock: Clock, live: () => readonly LiveNamespace[], wake: () => void) {
    this.#clock = clock;
    this.#live = live;
    this.#wake = wake;
  }

  /** An attempt goes by these selectors, and by the namespaces as they were before it. */
  follow(selectors: readonly LabelSelector[], before: readonly LiveNamespace[]): void {
    this.#selectors = selectors;
    this.#selected = selectionText(selectors, before);
  }

  hasChanged(): boolean {
    return this.#selectors.length > 0 && selectionText(this.#selectors, this.#live()) !== this.#selected;
  }

  /** A namespace came, went or has other labels. */
  namespacesChanged(): void {
    if (this.#selectors.length === 0 || this.#isDue) return;
    this.#isDue = true;
    this.#clock.schedule(SETTLE_MS, () => {
      this.#isDue = false;
      if (this.hasChanged()) this.#wake();
    });
  }
}
