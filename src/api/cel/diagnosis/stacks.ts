/**
 * Call stacks of the prediction: which states a rule returns to. Stacks with a common end are merged into one graph, and
 * equal graphs are the same object, so that comparing is `===`.
 */

/** Sorts behind every state. */
const BOTTOM_STATE = Number.MAX_SAFE_INTEGER;

export interface Stack {
  readonly id: number;
  /** Ascending. The parent of the bottom is undefined. */
  readonly tops: readonly { readonly state: number; readonly parent: Stack | undefined }[];
}

export const isBottom = (state: number): boolean => state === BOTTOM_STATE;
/** Whether a stack has ended here, on some way. */
export const mayBeEmpty = (stack: Stack): boolean => isBottom(stack.tops.at(-1)!.state);

export class Stacks {
  readonly bottom: Stack = { id: 0, tops: [{ state: BOTTOM_STATE, parent: undefined }] };
  readonly #known = new Map<string, Stack>();

  push(parent: Stack, state: number): Stack {
    return this.#of([{ state, parent }]);
  }

  /**
   * Both stacks as one. Without the context of the whole (`wildcard`) the bottom stands for anything and swallows the
   * other; with it upstream's runtime forgets the bottom, and so do we.
   */
  merge(a: Stack, b: Stack, wildcard: boolean): Stack {
    if (a === b) return a;
    if (a === this.bottom) return wildcard ? a : b;
    if (b === this.bottom) return wildcard ? b : a;
    const tops = new Map<number, Stack | undefined>(a.tops.map(({ state, parent }) => [state, parent]));
    for (const { state, parent } of b.tops) {
      const other = tops.get(state);
      tops.set(state, other === undefined || parent === undefined ? parent : this.merge(other, parent, wildcard));
    }
    return this.#of([...tops].map(([state, parent]) => ({ state, parent })).sort((x, y) => x.state - y.state));
  }

  #of(tops: Stack['tops']): Stack {
    const key = tops.map(({ state, parent }) => `${state}:${parent?.id ?? ''}`).join();
    let stack = this.#known.get(key);
    if (stack === undefined) {
      stack = { id: this.#known.size + 1, tops };
      this.#known.set(key, stack);
    }
    return stack;
  }
}
