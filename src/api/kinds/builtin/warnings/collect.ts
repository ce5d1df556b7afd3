/** How warnings of many items are collected: one by one, and in steps where there are many. */
import type { Pace, Steps } from '../../../meta/steps.ts';

/** Where one judgement collects what it finds, and how it lets others in. */
export interface Collecting {
  readonly found: string[];
  readonly pace: Pace;
}

/** The stops of a part of the work; of little work a list of none or one, which costs less than a generator. */
export type Stops = Iterable<undefined, void>;
const NO_STOP: Stops = [];
const ONE_STOP: Stops = [undefined];
const FEW = 32;

type Warn<T> = (item: T, index: number) => readonly string[] | undefined;

/** Collects what `warn` says of each item; nothing, for most. `weight` is what one item counts. */
export function warnEach<T>(to: Collecting, items: readonly T[], warn: Warn<T>, weight = 1): Stops {
  if (items.length > FEW) return warnMany(to, items, warn, weight);
  for (let i = 0; i < items.length; i++) add(to.found, warn(items[i]!, i));
  return to.pace.due(items.length * weight) ? ONE_STOP : NO_STOP;
}

function* warnMany<T>(to: Collecting, items: readonly T[], warn: Warn<T>, weight: number): Steps<void> {
  for (let i = 0; i < items.length; i++) {
    add(to.found, warn(items[i]!, i));
    if (to.pace.due(weight)) yield;
  }
}

/** One by one: as arguments, some hundred thousand would not fit the stack. */
export function add(found: string[], texts: readonly string[] | undefined): void {
  if (texts !== undefined) for (const text of texts) found.push(text);
}
