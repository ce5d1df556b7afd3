/** The end of a turn of the event loop: what takes long is done in pieces, with others served between them. */

type Immediate = (fire: () => void) => unknown;

/** For so long those who waited go on one after another; then others have their turn. */
const TOGETHER_MS = 2;

/** Those who wait, the longest waiting first. Each is a piece of work under way, and as many as there are of those. */
let waiting: (() => void)[] = [];
let first = 0;
let isAsked = false;

/**
 * Resolves when everybody else (sockets, timers) had their turn. Of those who wait, as many go on per turn as have short
 * pieces to do: the long pieces of a hundred works at once would be one long step again, and a turn for each short one
 * would have them all wait a hundred turns. A wait for nothing: no fake clock owns it.
 */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    waiting.push(resolve);
    ask();
  });
}

function ask(): void {
  if (isAsked) return;
  isAsked = true;
  endOfTurn(release);
}

function release(): void {
  const until = performance.now() + TOGETHER_MS;
  const { length } = waiting;
  const one = (): void => {
    waiting[first++]!();
    // Asked behind its piece, which by then is done. Who waits again does so for the next turn.
    queueMicrotask(() => {
      if (first < length && performance.now() < until) return one();
      if (first === waiting.length || first >= 1024) {
        waiting = waiting.slice(first);
        first = 0;
      }
      isAsked = false;
      if (waiting.length > 0) ask();
    });
  };
  one();
}

/** Calls `fire` when sockets and timers had their turn. */
export function endOfTurn(fire: () => void): void {
  // A browser has no setImmediate; its shortest timer does the same, a little later.
  const { setImmediate } = globalThis as { setImmediate?: Immediate };
  if (setImmediate) setImmediate(fire);
  else setTimeout(fire, 0);
}
