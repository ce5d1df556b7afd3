/** How warnings of many items are collected: one by one, and in steps where there are many. */
import { eachInSteps, Pace, type Steps, type Stops } from '@coracle/apimachinery/meta/steps';

export type { Stops };

/** Where one decision collects what it finds, and how it lets others in. */
export interface Collecting {
  readonly found: string[];
  readonly pace: Pace;
}

type Warn<T> = (item: T, index: number) => readonly string[] | undefined;

/** Collects what `warn` says of each item; nothing, for most. `weight` is what one item counts. */
export const warnEach = <T>(to: Collecting, items: readonly T[], warn: Warn<T>, weight = 1): Stops =>
  eachInSteps(to.pace, items, (item, i) => add(to.found, warn(item, i)), weight);

/** The same of items that hold lists of their own: `warn` adds to the same collection. */
export function* warnNested<T>(
  { pace }: Collecting,
  items: readonly T[],
  warn: (item: T, index: number) => Stops,
  weight = 1,
): Steps<void> {
  for (let i = 0; i < items.length; i++) {
    if (pace.due(weight)) yield;
    yield* warn(items[i]!, i);
  }
}

/** A collection that begins. */
export const newCollecting = (): Collecting => ({ found: [], pace: new Pace() });

/** One by one: as arguments, some hundred thousand would not fit the stack. */
export function add(found: string[], texts: readonly string[] | undefined): void {
  if (texts !== undefined) for (const text of texts) found.push(text);
}
