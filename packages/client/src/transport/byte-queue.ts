/**
 * A ByteSink with a reader: what the client hands to a streaming response. The writer learns when the reader is behind
 * (`write` returns false, `buffered` grows); a writer that ignores it is cut off at the hard bound.
 */
import type { ByteSink, StreamDocument } from '@coracle/runtime/http/seam';
import { createDeferred, type Deferred } from '@coracle/runtime/signal/deferred';

/** Above this many unread bytes `write` answers false. */
const HIGH_WATER = 1024 * 1024;
/** Above this many the stream is given up: the reader gets an error, the writer's signal fires. */
const HARD_LIMIT = 64 * 1024 * 1024;

/** What a writer hands over at a time: bytes, or with `documents` a value in place of a line of them. */
export type Part = Uint8Array | StreamDocument;

/**
 * Makes a queue whose writer is asked to stop by `signal`, which the caller aborts when it reads no further. With
 * `documents` a writer in this process may hand over values.
 */
export function createByteQueue(signal: AbortSignal, options: { readonly documents?: boolean } = {}) {
  const parts: Part[] = [];
  /** Bytes that each part stands for. */
  const sizes: number[] = [];
  let head = 0;
  let buffered = 0;
  let ended = false;
  let failure: Error | undefined;
  let reader: Deferred<void> | undefined;
  let drain: Deferred<void> | undefined;

  const wake = (): void => {
    reader?.resolve();
    reader = undefined;
  };
  const release = (): void => {
    drain?.resolve();
    drain = undefined;
  };
  const finish = (): void => {
    ended = true;
    wake();
    release();
  };
  const given = new AbortController();
  const stop = (): void => {
    finish();
    given.abort(signal.reason);
  };
  if (signal.aborted) stop();
  else signal.addEventListener('abort', stop, { once: true });

  const put = (part: Part, size: number): boolean => {
    if (ended || size === 0) return !ended;
    parts.push(part);
    sizes.push(size);
    buffered += size;
    if (buffered > HARD_LIMIT) {
      failure = new Error(`Cannot read stream: ${buffered} bytes unread, the bound is ${HARD_LIMIT}`);
      finish();
      given.abort(failure);
      return false;
    }
    wake();
    return buffered <= HIGH_WATER;
  };

  const sink: ByteSink = {
    write: (chunk) => put(chunk, chunk.length),
    ...(options.documents && { document: put }),
    get buffered() {
      return buffered;
    },
    drained() {
      if (ended || buffered <= HIGH_WATER) return Promise.resolve();
      drain ??= createDeferred();
      return drain.promise;
    },
    end: finish,
    signal: given.signal,
  };

  return {
    sink,
    /** The next part, undefined at the end. Parts are the writer's own: read only. Throws when the queue was given up. */
    async next(): Promise<Part | undefined> {
      for (;;) {
        if (failure) throw failure;
        if (head < parts.length) {
          const part = parts[head]!;
          buffered -= sizes[head]!;
          head++;
          if (head === parts.length) {
            parts.length = 0;
            sizes.length = 0;
            head = 0;
          }
          if (buffered <= HIGH_WATER) release();
          return part;
        }
        if (ended) return undefined;
        reader ??= createDeferred();
        await reader.promise;
      }
    },
    /** Ends the queue from the reader's side. */
    close(): void {
      signal.removeEventListener('abort', stop);
      stop();
    },
  };
}
