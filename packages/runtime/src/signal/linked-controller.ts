/** An AbortController that also follows its parents, and can let go of them. */
export interface LinkedController {
  readonly signal: AbortSignal;
  /** Aborts the own signal only. */
  abort(reason?: unknown): void;
  /** Stops listening to the parents: call it when the work is over, else long-lived parents collect listeners. */
  release(): void;
}

/** Makes a controller that aborts with the first of `parents` to abort, with that parent's reason. */
export function createLinkedController(...parents: readonly (AbortSignal | undefined)[]): LinkedController {
  const own = new AbortController();
  const releases: (() => void)[] = [];
  const release = (): void => {
    for (const undo of releases.splice(0)) undo();
  };
  for (const parent of parents) {
    if (!parent) continue;
    if (parent.aborted) {
      own.abort(parent.reason);
      break;
    }
    const follow = (): void => {
      own.abort(parent.reason);
      release();
    };
    parent.addEventListener('abort', follow, { once: true });
    releases.push(() => parent.removeEventListener('abort', follow));
  }
  return { signal: own.signal, abort: (reason) => own.abort(reason), release };
}
