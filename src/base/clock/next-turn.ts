/** The end of a turn of the event loop: what takes long is done in pieces, with others served between them. */

type Immediate = (fire: () => void) => unknown;

/** Resolves when everybody who waits (sockets, timers) had their turn. A wait for nothing: no fake clock owns it. */
export function nextTurn(): Promise<void> {
  // A browser has no setImmediate; its shortest timer does the same, a little later.
  const soon = (globalThis as { setImmediate?: Immediate }).setImmediate ?? ((fire) => setTimeout(fire, 0));
  return new Promise((resolve) => soon(() => resolve()));
}
