/**
 * How far something is that takes its time: on a terminal one line that is written over, elsewhere a line when something else
 * is said than before, numbers aside, and from time to time.
 */
import type { Clock } from '@coracle/runtime/clock/clock';

/** Between two lines that differ in their numbers alone, where there is no terminal. */
const PAUSE_MS = 10_000;
const CLEAR = '\r\x1b[K';

export interface Progress {
  /** Says how far it is. */
  show(text: string): void;
  /** Takes the line off the terminal, for something that stays. */
  clear(): void;
}

/** `columns` is the width of the terminal; undefined where there is none. */
export function createProgress(
  write: (text: string) => void,
  { clock, columns }: { readonly clock: Pick<Clock, 'monotonic'>; readonly columns: () => number | undefined },
): Progress {
  let isShown = false;
  let last: { readonly words: string; readonly at: number } | undefined;
  return {
    show(text) {
      const width = columns();
      if (width !== undefined) {
        isShown = true;
        return write(`${CLEAR}${text.length < width ? text : `${text.slice(0, Math.max(0, width - 2))}…`}`);
      }
      const [words, now] = [text.replace(/[\d.]+/g, '#'), clock.monotonic()];
      if (last?.words === words && now - last.at < PAUSE_MS) return;
      last = { words, at: now };
      write(`${text}\n`);
    },
    clear() {
      if (isShown) write(CLEAR);
      isShown = false;
    },
  };
}
