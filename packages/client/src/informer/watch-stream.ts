/** The watch of an informer that is open now, read one event at a time. */
import type { ResourceType } from '@coracle/apimachinery/meta/gvk';
import type { KubeObject } from '@coracle/apimachinery/meta/object';
import type { Clock } from '@coracle/runtime/clock/clock';
import { createLinkedController } from '@coracle/runtime/signal/linked-controller';
import type { Client, WatchCallOptions, WatchEvent } from '../client.ts';
import type { WatchInput } from './watch-state.ts';

/** A watch that lives this long was a success: the next failure is a first one. */
const HEALTHY_MS = 5_000;
/** A watch-list that is silent this long is not understood: every server sends at least the end bookmark. */
const SILENT_MS = 30_000;
/** The server is asked to end a watch after 5 to 10 minutes, so that load moves on to other servers. */
const WATCH_SECONDS = 300;

export interface WatchStreamOptions<T extends KubeObject> {
  /** Namespace, selectors, and how much of each object. */
  readonly scope: WatchCallOptions;
  readonly clock: Clock;
  readonly random: () => number;
  /** Begins anew when a watch has worked. */
  readonly backoff: { reset(): void };
  /** An event of a watch that goes on has come. */
  readonly onAlive: () => void;
  /** What is kept of an object. */
  readonly trim: (object: T) => T;
}

/** Makes the stream; nothing is asked before `open`. */
export function createWatchStream<T extends KubeObject>(
  client: Client,
  type: ResourceType<T>,
  options: WatchStreamOptions<T>,
) {
  const { scope, clock, random, backoff, onAlive, trim } = options;
  /** The open stream, if any: the machine asks for one event at a time. */
  let stream: { events: AsyncIterator<WatchEvent<T>>; cancel: () => void; since: number } | undefined;
  const close = (): void => {
    stream?.cancel();
    stream = undefined;
  };

  /** Ends the one before. Without a version it begins with the objects that there are. */
  const open = (signal: AbortSignal, resourceVersion: string | undefined): void => {
    close();
    const linked = createLinkedController(signal);
    const events = client.watch<T>(type, {
      ...scope,
      readOnly: true,
      allowWatchBookmarks: true,
      timeoutSeconds: Math.floor(WATCH_SECONDS * (1 + random())),
      ...(resourceVersion === undefined
        ? { sendInitialEvents: true, resourceVersionMatch: 'NotOlderThan' as const }
        : { resourceVersion }),
      signal: linked.signal,
    });
    stream = {
      events: events[Symbol.asyncIterator](),
      since: clock.monotonic(),
      cancel: () => {
        linked.release();
        linked.abort(new DOMException('informer moves on', 'AbortError'));
      },
    };
  };

  /** The next event, or what became of the stream instead. `initial`: the objects that there are have not all come. */
  const read = async (initial: boolean): Promise<WatchInput<T>> => {
    if (!stream) return { type: 'ended' };
    const current = stream;
    let silent = false;
    const stopTimer = initial
      ? clock.schedule(SILENT_MS, () => {
          silent = true;
          current.cancel();
        })
      : undefined;
    try {
      const result = await current.events.next();
      if (silent) return { type: 'silent' };
      if (!result.done) {
        if (!initial) {
          backoff.reset();
          onAlive();
        }
        const { type: change, object } = result.value;
        return { type: 'event', event: { type: change, object: trim(object) } };
      }
      const lived = clock.monotonic() - current.since;
      close();
      if (lived >= HEALTHY_MS) backoff.reset();
      // A server that ends every watch at once would otherwise be asked in a tight loop.
      else if (!initial) return { type: 'failed', error: new Error('the watch ended at once') };
      return { type: 'ended' };
    } catch (error) {
      close();
      return silent ? { type: 'silent' } : { type: 'failed', error };
    } finally {
      stopTimer?.();
    }
  };

  return { open, read, close };
}
