/**
 * Work cut into steps: a generator that stops where others may be served. One description of the work serves both ways
 * of doing it, in one go and in pieces.
 */
import type { Pause } from './pause.ts';

/** Work that stops between its steps and comes to a result. */
export type Steps<T> = Generator<undefined, T, undefined>;

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

/** Does the work with a pause after each step where there is one to make, else in one go. */
export const runSteps = <T>(work: Steps<T>, pause: Pause | undefined): T | Promise<T> =>
  pause ? inPieces(work, pause) : finish(work);

/** The stops of a part of the work; of little work a list of none or one, which costs less than a generator. */
export type Stops = Iterable<undefined, void>;
export const NO_STOP: Stops = [];
const ONE_STOP: Stops = [undefined];
/** Items that are done at once. */
const FEW = 32;

/** Does something with each item, in steps where there are many. `weight` is what one counts. */
export function eachInSteps<T>(
  pace: Pace,
  items: readonly T[],
  act: (item: T, index: number) => void,
  weight = 1,
): Stops {
  if (items.length > FEW) return manyInSteps(pace, items, act, weight);
  for (let i = 0; i < items.length; i++) act(items[i]!, i);
  return pace.due(items.length * weight) ? ONE_STOP : NO_STOP;
}

function* manyInSteps<T>(
  pace: Pace,
  items: readonly T[],
  act: (item: T, index: number) => void,
  weight: number,
): Steps<void> {
  // Making the list was work as well: the names of 100,000 members take some 20 ms.
  if (pace.due(items.length >> 2)) yield;
  for (let i = 0; i < items.length; i++) {
    act(items[i]!, i);
    if (pace.due(weight)) yield;
  }
}
