/** Sorting in steps. */
import type { Steps } from './steps.ts';

/** Items sorted or merged between two stops. */
const SLICE = 4000;

/** As `sort` of a copy: pieces are sorted, then merged two by two. What is equal keeps its order. */
export function* sortedSteps<T>(items: readonly T[], compare: (a: T, b: T) => number): Steps<T[]> {
  let runs: T[][] = [];
  for (let at = 0; at < items.length; at += SLICE) {
    runs.push(items.slice(at, at + SLICE).sort(compare));
    if (items.length > SLICE) yield;
  }
  while (runs.length > 1) {
    const merged: T[][] = [];
    for (let at = 0; at < runs.length; at += 2) merged.push(yield* mergedSteps(runs[at]!, runs[at + 1] ?? [], compare));
    runs = merged;
  }
  return runs[0] ?? [];
}

function* mergedSteps<T>(a: readonly T[], b: readonly T[], compare: (a: T, b: T) => number): Steps<T[]> {
  const out: T[] = [];
  for (let [i, j] = [0, 0]; i < a.length || j < b.length; ) {
    const isFirst = j === b.length || (i < a.length && compare(a[i]!, b[j]!) <= 0);
    out.push(isFirst ? a[i++]! : b[j++]!);
    if (out.length % SLICE === 0) yield;
  }
  return out;
}
