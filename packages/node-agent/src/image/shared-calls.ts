/** Joins callers that want the same slow thing: it runs once, and stops only when every caller has gone. */
import { abortable } from '@coracle/runtime/signal/abortable';

type Progress = (done: number, total: number) => void;

interface Call {
  readonly promise: Promise<unknown>;
  readonly controller: AbortController;
  readonly listeners: Set<Progress>;
  /** No later caller joins it. */
  readonly forget: () => void;
  waiting: number;
}

/** Makes a function that runs `work` for the first caller of `key`; later callers get the same outcome. */
export function createSharedCalls() {
  const calls = new Map<string, Call>();
  const begin = (key: string, work: (signal: AbortSignal, progress: Progress) => Promise<unknown>): Call => {
    const controller = new AbortController();
    const listeners = new Set<Progress>();
    const promise = work(controller.signal, (done, total) => {
      for (const listener of listeners) listener(done, total);
    });
    const forget = (): void => {
      if (calls.get(key) === call) calls.delete(key);
    };
    const call: Call = { promise, controller, listeners, forget, waiting: 0 };
    calls.set(key, call);
    promise.then(forget, forget);
    return call;
  };
  return async <T>(
    key: string,
    signal: AbortSignal,
    work: (signal: AbortSignal, progress: Progress) => Promise<T>,
    onProgress: Progress = () => {},
  ): Promise<T> => {
    signal.throwIfAborted();
    const call = calls.get(key) ?? begin(key, work);
    call.waiting++;
    call.listeners.add(onProgress);
    try {
      return (await abortable(call.promise, signal)) as T;
    } finally {
      call.listeners.delete(onProgress);
      if (--call.waiting === 0 && signal.aborted) {
        // A later caller must not join what is being torn down.
        call.forget();
        call.controller.abort(signal.reason);
      }
    }
  };
}
