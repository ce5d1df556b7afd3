/**
 * One watch as a byte stream.
 *
 * States: `initial` (the current state goes out, waiting for the reader between chunks) -> `live` (changes go out as
 * they are published) -> `closed`. The live part starts from the snapshot's revision in the retained log, so nothing
 * is missed however long the initial part took.
 *
 * Guarantees: revision order, no gap, no duplicate; a bookmark's revision covers only what was sent before it; a
 * reader that stays behind is disconnected and resumes from its last revision.
 */

import { type ResourceInfo, storagePrefix } from '../../api/kinds/resource.ts';
import type { Status } from '../../api/meta/status.ts';
import type { ByteSink, ByteStream } from '../../base/http/seam.ts';
import type { Change, StoreWatch } from '../cache/object-store.ts';
import { waitForRevision } from '../registry/resource-version.ts';
import type { Selection } from '../registry/selection.ts';
import type { Server } from './exchange.ts';
import { toApiError } from './responses.ts';
import type { FrameEncoder, FrameType } from './watch-frames.ts';

export interface WatchPlan {
  readonly info: ResourceInfo;
  /** '' = all namespaces. */
  readonly namespace: string;
  readonly selection: Selection;
  /** Changes after this revision; with `initialState` the snapshot must not be older than it. 0 = now. */
  readonly from: number;
  /** Send the current state first. */
  readonly initialState: boolean;
  readonly bookmarks: boolean;
  readonly timeoutMs: number;
  readonly frames: FrameEncoder;
}

export const BOOKMARK_INTERVAL_MS = 60_000;
/** A last bookmark goes out this long before the stream's time is up. */
const BOOKMARK_BEFORE_END_MS = 2000;
/** Bytes that may wait for a slow reader, and how long it may stay behind. */
export const MAX_BUFFERED_BYTES = 16 * 1024 * 1024;
export const MAX_BEHIND_MS = 10_000;
/** Initial events are handed over in pieces of about this size. */
const INITIAL_CHUNK_BYTES = 256 * 1024;

/** The stream of a watch; starts when the transport calls it. */
export const watchStream =
  (server: Server, plan: WatchPlan): ByteStream =>
  (sink) => {
    new WatchSession(server, plan, sink).start();
  };

class WatchSession {
  readonly #server: Server;
  readonly #plan: WatchPlan;
  readonly #sink: ByteSink;
  #closed = false;
  /** Everything up to here has been written. */
  #sent = 0;
  #watch: StoreWatch | undefined;
  #cancelBehind: (() => void) | undefined;
  readonly #cleanups: (() => void)[] = [];

  constructor(server: Server, plan: WatchPlan, sink: ByteSink) {
    this.#server = server;
    this.#plan = plan;
    this.#sink = sink;
  }

  start(): void {
    const { clock, watches, metrics } = this.#server;
    const { info, timeoutMs, bookmarks } = this.#plan;
    if (this.#sink.signal.aborted) return;
    metrics.longRunning(1);
    const onGone = (): void => this.#close();
    this.#sink.signal.addEventListener('abort', onGone, { once: true });
    this.#cleanups.push(
      () => metrics.longRunning(-1),
      () => this.#sink.signal.removeEventListener('abort', onGone),
      watches.add(info, () => this.#end()),
      clock.schedule(timeoutMs, () => this.#end()),
    );
    if (bookmarks) {
      this.#cleanups.push(clock.schedule(Math.max(0, timeoutMs - BOOKMARK_BEFORE_END_MS), () => this.#bookmark()));
    }
    this.#run().catch((error: unknown) => this.#fail(toApiError(error).status));
  }

  async #run(): Promise<void> {
    const { from, initialState } = this.#plan;
    if (initialState) await this.#sendInitialState();
    else this.#sent = from === 0 ? this.#server.registry.store.revision() : from;
    if (this.#closed) return;
    this.#follow();
    if (this.#plan.bookmarks) this.#scheduleBookmark();
  }

  async #sendInitialState(): Promise<void> {
    const { registry } = this.#server;
    const { info, namespace, selection, from, frames, bookmarks } = this.#plan;
    const wait = waitForRevision(registry, from, this.#sink.signal);
    if (wait) await wait;
    const { items, revision } = registry.store.list(storagePrefix(info), {
      ...(namespace !== '' && { namespace }),
      ...(!selection.everything && { match: selection.matches }),
    });
    let chunk: Uint8Array[] = [];
    let bytes = 0;
    const flush = async (): Promise<void> => {
      if (bytes === 0) return;
      const piece = chunk.length === 1 ? chunk[0]! : concat(chunk, bytes);
      chunk = [];
      bytes = 0;
      if (!this.#write(piece)) await this.#sink.drained();
    };
    for (const item of items) {
      const encoded = frames.initial(item);
      chunk.push(encoded);
      bytes += encoded.length;
      if (bytes < INITIAL_CHUNK_BYTES) continue;
      await flush();
      if (this.#closed) return;
    }
    if (bookmarks) {
      const end = frames.bookmark(revision, true);
      chunk.push(end);
      bytes += end.length;
    }
    await flush();
    this.#sent = revision;
  }

  /** Live from `#sent` on. Throws ApiError 410 when the log no longer reaches back that far. */
  #follow(): void {
    const { store } = this.#server.registry;
    this.#watch = store.watch(
      storagePrefix(this.#plan.info),
      this.#sent,
      (changes) => this.#deliver(changes),
      (revision) => {
        if (revision > this.#sent) this.#sent = revision;
      },
    );
  }

  #deliver(changes: readonly Change[]): void {
    const { namespace, selection, frames } = this.#plan;
    for (const change of changes) {
      if (this.#closed) return;
      // A watch from a future revision hears nothing until that revision has passed.
      if (change.revision <= this.#plan.from) continue;
      this.#sent = Math.max(this.#sent, change.revision);
      if (namespace !== '' && change.current.namespace !== namespace) continue;
      const transition = transitionOf(change, selection);
      if (transition === undefined) continue;
      this.#server.metrics.watchEvent();
      this.#write(transition === 'LEFT' ? frames.left(change) : frames.change(transition, change));
    }
  }

  #scheduleBookmark(): void {
    const tick = (): void => {
      this.#bookmark();
      if (!this.#closed) cancel = this.#server.clock.schedule(BOOKMARK_INTERVAL_MS, tick);
    };
    let cancel = this.#server.clock.schedule(BOOKMARK_INTERVAL_MS, tick);
    this.#cleanups.push(() => cancel());
  }

  #bookmark(): void {
    // Before the live part began, what was sent covers no revision at all.
    if (this.#watch === undefined || this.#sent === 0) return;
    this.#write(this.#plan.frames.bookmark(this.#sent, false));
  }

  /** False when the reader is behind. Disconnects one that is too far or too long behind. */
  #write(bytes: Uint8Array): boolean {
    if (this.#closed) return true;
    if (this.#sink.write(bytes)) return true;
    if (this.#sink.buffered > MAX_BUFFERED_BYTES) {
      this.#end();
      return true;
    }
    if (this.#cancelBehind === undefined) {
      this.#cancelBehind = this.#server.clock.schedule(MAX_BEHIND_MS, () => this.#end());
      void this.#sink.drained().then(() => {
        this.#cancelBehind?.();
        this.#cancelBehind = undefined;
      });
    }
    return false;
  }

  #fail(status: Status): void {
    if (this.#closed) return;
    this.#sink.write(this.#plan.frames.error(status));
    this.#end();
  }

  /** Ends the stream normally: the reader watches again from its last revision. */
  #end(): void {
    if (this.#closed) return;
    this.#close();
    this.#sink.end();
  }

  #close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#watch?.stop();
    this.#cancelBehind?.();
    for (const cleanup of this.#cleanups) cleanup();
  }
}

/** How a change looks through the selection: by the state before and after it. */
function transitionOf(change: Change, selection: Selection): FrameType | 'LEFT' | undefined {
  const { type, current, previous } = change;
  if (selection.everything) return type;
  const before = previous !== undefined && selection.matches(previous);
  if (type === 'DELETED') return before || (!previous && selection.matches(current)) ? 'DELETED' : undefined;
  const after = selection.matches(current);
  if (after) return before ? 'MODIFIED' : 'ADDED';
  return before ? 'LEFT' : undefined;
}

function concat(chunks: readonly Uint8Array[], length: number): Uint8Array {
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, at);
    at += chunk.length;
  }
  return bytes;
}
