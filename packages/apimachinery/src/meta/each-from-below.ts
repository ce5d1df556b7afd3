/** Walks over large trees with others served in between. */
import type { Pause } from './pause.ts';

/** Nodes between two pauses: a millisecond or two. */
const TOGETHER = 500;

/**
 * Calls `act` with every node of a tree, with each after all that lie below it: what `act` remembers of those it need not
 * find out again. `pause` is awaited between some hundred nodes.
 */
export async function eachFromBelow<N extends object>(
  root: N,
  below: (node: N) => Iterable<N>,
  act: (node: N) => void,
  pause: Pause,
): Promise<void> {
  const nodes = new Set([root]);
  let looked = 0;
  for (const node of nodes) {
    for (const child of below(node)) nodes.add(child);
    if (++looked % TOGETHER === 0) await pause();
  }
  for (const node of [...nodes].reverse()) {
    act(node);
    if (++looked % TOGETHER === 0) await pause();
  }
}
