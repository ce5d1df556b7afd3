/**
 * A ByteSink with a reader: what the client hands to a streaming response. The writer learns when the reader is behind
 * (`write` returns false, `buffered` grows); a writer that ignores it is cut off at the hard bound.
 */
import type { ByteSink } from '../../base/http/seam.ts';
import { createDeferred, type Deferred } from '../../base/signal/deferred.ts';

/** Above this many unread bytes `write` answers false. */
const HIGH_WATER = 1024 * 1024;
/** Above this many the stream is given up: the reader gets an error, the writer's signal fires. */
const HARD_LIMIT = 64 * 1024 * 1024;

export interface ByteQueue {
  readonly sink: ByteSink;
  /** The next chunk, undefined at the end. Chunks are the writer's own: read only. Throws when the queue was given up. */
  next(): Promise<Uint8Array | undefined>;
  /** Ends the queue from the reader's side. */
  close(): void;
}

/** Makes a queue whose writer is told to stop by `signal`, which the caller aborts when it reads no further. */
export function createByteQueue(signal: AbortSignal): ByteQueue {
  const chunks: Uint8Array[] = [];
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
  const finish = (): void => {
    ended = true;
    wake();
    drain?.resolve();
    drain = undefined;
  };
  const given = new AbortController();
  const stop = (): void => {
    finish();
    given.abort(signal.reason);
  };
  if (signal.aborted) stop();
  else signal.addEventListener('abort', stop, { once: true });

  const sink: ByteSink = {
    write(chunk) {
      if (ended || chunk.length === 0) return !ended;
      chunks.push(chunk);
      buffered += chunk.length;
      if (buffered > HARD_LIMIT) {
        failure = new Error(`Cannot read stream: ${buffered} bytes unread, the bound is ${HARD_LIMIT}`);
        finish();
        given.abort(failure);
        return false;
      }
      wake();
      return buffered <= HIGH_WATER;
    },
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
    async next() {
      for (;;) {
        if (failure) throw failure;
        if (head < chunks.length) {
          const chunk = chunks[head]!;
          head++;
          if (head === chunks.length) {
            chunks.length = 0;
            head = 0;
          }
          buffered -= chunk.length;
          if (buffered <= HIGH_WATER) {
            drain?.resolve();
            drain = undefined;
          }
          return chunk;
        }
        if (ended) return undefined;
        reader ??= createDeferred();
        await reader.promise;
      }
    },
    close() {
      signal.removeEventListener('abort', stop);
      stop();
    },
  };
}
