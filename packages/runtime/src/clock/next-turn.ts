/** The end of a turn of the event loop: what takes long is done in pieces, with others served between them. */

type Immediate = (fire: () => void) => unknown;

/** Those who wait, the longest waiting first. Each is a piece of work under way, and as many as there are of those. */
let waiting: (() => void)[] = [];
let first = 0;

/**
 * Resolves when everybody else (sockets, timers) had their turn. One who waits goes on per turn: the pieces of a hundred
 * works at once would be one long step again. A wait for nothing: no fake clock owns it.
 */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    waiting.push(resolve);
    if (waiting.length - first === 1) endOfTurn(release);
  });
}

function release(): void {
  const next = waiting[first++]!;
  if (first === waiting.length) {
    waiting = [];
    first = 0;
  } else {
    if (first === 1024) {
      waiting = waiting.slice(first);
      first = 0;
    }
    endOfTurn(release);
  }
  next();
}

/** Calls `fire` when sockets and timers had their turn. */
export function endOfTurn(fire: () => void): void {
  // A browser has no setImmediate; its shortest timer does the same, a little later.
  const { setImmediate } = globalThis as { setImmediate?: Immediate };
  if (setImmediate) setImmediate(fire);
  else setTimeout(fire, 0);
}
