/** Joins callers that want the same slow thing: it runs once, and stops only when every caller has gone. */

export type Progress = (done: number, total: number) => void;

export interface SharedCalls {
  /** Runs `work` for the first caller of `key`; later callers get the same outcome. */
  join<T>(
    key: string,
    signal: AbortSignal,
    work: (signal: AbortSignal, progress: Progress) => Promise<T>,
    onProgress?: Progress,
  ): Promise<T>;
}

interface Call {
  readonly promise: Promise<unknown>;
  readonly controller: AbortController;
  readonly listeners: Set<Progress>;
  waiting: number;
}

/** Makes an empty register of calls. */
export function createSharedCalls(): SharedCalls {
  const calls = new Map<string, Call>();
  return {
    async join<T>(
      key: string,
      signal: AbortSignal,
      work: (signal: AbortSignal, progress: Progress) => Promise<T>,
      onProgress?: Progress,
    ): Promise<T> {
      signal.throwIfAborted();
      let call = calls.get(key);
      if (!call) {
        const controller = new AbortController();
        const listeners = new Set<Progress>();
        const promise = work(controller.signal, (done, total) => {
          for (const listener of listeners) listener(done, total);
        });
        const made: Call = { promise, controller, listeners, waiting: 0 };
        calls.set(key, made);
        const forget = (): void => {
          if (calls.get(key) === made) calls.delete(key);
        };
        promise.then(forget, forget);
        call = made;
      }
      const joined = call;
      joined.waiting++;
      if (onProgress) joined.listeners.add(onProgress);
      let leave: () => void = () => {};
      const left = new Promise<never>((_, reject) => {
        leave = () => reject(signal.reason as Error);
        signal.addEventListener('abort', leave, { once: true });
      });
      try {
        return (await Promise.race([joined.promise, left])) as T;
      } finally {
        signal.removeEventListener('abort', leave);
        if (onProgress) joined.listeners.delete(onProgress);
        if (--joined.waiting === 0 && signal.aborted) {
          // A later caller must not join what is being torn down.
          if (calls.get(key) === joined) calls.delete(key);
          joined.controller.abort(signal.reason);
        }
      }
    },
  };
}
