/**
 * Work cut into steps: a generator that stops where others may be served. One description of the work serves both ways
 * of doing it, in one go and in pieces.
 */

/** Work that stops between its steps and comes to a result. */
export type Steps<T> = Generator<undefined, T, undefined>;

/** Lets others in; `nextTurn` of base/clock. */
export type Pause = () => Promise<void>;

/** Members, items and the like between two stops: at most some milliseconds, whatever is done to each. */
const SLICE = 2000;

/** Says when it is time to stop. */
export class Pace {
  #left = SLICE;

  /** Counts `weight` things done; true when others should be let in before the next. */
  due(weight = 1): boolean {
    this.#left -= weight;
    if (this.#left > 0) return false;
    this.#left = SLICE;
    return true;
  }
}

/** Does the work in one go. */
export function finish<T>(work: Steps<T>): T {
  for (;;) {
    const step = work.next();
    if (step.done) return step.value;
  }
}

/** Does the work with a pause after each step. What the work throws is thrown. */
export async function inPieces<T>(work: Steps<T>, pause: Pause): Promise<T> {
  for (;;) {
    const step = work.next();
    if (step.done) return step.value;
    await pause();
  }
}
