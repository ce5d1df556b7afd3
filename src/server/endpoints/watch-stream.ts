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
import type { ByteSink, ByteStream, StreamDocument } from '../../base/http/seam.ts';
import type { Change, StoredObject, StoreWatch } from '../cache/object-store.ts';
import { waitForRevision } from '../registry/resource-version.ts';
import type { Selection } from '../registry/selection.ts';
import { prepareViews } from '../registry/versioned-view.ts';
import type { Server } from './exchange.ts';
import { toApiError } from './responses.ts';
import type { FrameEncoder, FrameType, ValueEncoder } from './watch-frames.ts';

export interface WatchPlan {
  readonly info: ResourceInfo;
  /** '' = all namespaces. */
  readonly namespace: string;
  /** Of the one object that is watched; '' = all. */
  readonly name: string;
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
/** Bytes of published events that may wait for the next round. */
const MAX_PENDING_BYTES = 256 * 1024;
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
  /** The last batch of changes that is being converted. */
  #converting: Promise<void> = Promise.resolve();
  #cancelBehind: (() => void) | undefined;
  /** Frames of published changes that go out with the next round of `Server.pace`. */
  #pending: Uint8Array[] = [];
  #pendingBytes = 0;
  #asked = false;
  readonly #onRound = (): void => {
    this.#asked = false;
    this.#flush();
  };
  /** Events go out as values where the reader takes them. */
  readonly #values: ValueEncoder | undefined;
  readonly #cleanups: (() => void)[] = [];

  constructor(server: Server, plan: WatchPlan, sink: ByteSink) {
    this.#server = server;
    this.#plan = plan;
    this.#sink = sink;
    this.#values = sink.document && plan.frames.values;
  }

  start(): void {
    const { clock, flowControl, watches, metrics } = this.#server;
    const { info, namespace, name, timeoutMs, bookmarks } = this.#plan;
    if (this.#sink.signal.aborted) return;
    metrics.longRunning(1);
    const onGone = (): void => this.#close();
    this.#sink.signal.addEventListener('abort', onGone, { once: true });
    this.#cleanups.push(
      () => metrics.longRunning(-1),
      () => this.#sink.signal.removeEventListener('abort', onGone),
      watches.add(info, () => this.#end()),
      flowControl.watching({ group: info.group, resource: info.resource, namespace, name }),
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
    if (info.remote !== undefined) {
      await prepareViews(info, registry.store.list(storagePrefix(info)).items, { again: false });
      if (this.#closed) return;
    }
    const { items, revision } = registry.store.list(storagePrefix(info), {
      ...(namespace !== '' && { namespace }),
      ...(!selection.everything && info.remote === undefined && { match: selection.matches }),
    });
    // What came in while the others were being converted.
    await prepareViews(info, items, { again: false });
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
      if (info.remote !== undefined && !selection.matches(item)) continue;
      if (this.#values) {
        if (this.#hand(this.#values.initial(item), item)) continue;
        await this.#sink.drained();
        if (this.#closed) return;
        continue;
      }
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
      (changes) => this.#receive(changes),
      (revision) => {
        // A revision counts as sent only when its changes are through the conversion.
        if (this.#plan.info.remote === undefined && revision > this.#sent) this.#sent = revision;
      },
    );
  }

  /** Changes that must be converted first wait in line, so that their order stays. */
  #receive(changes: readonly Change[]): void {
    const { info } = this.#plan;
    if (info.remote === undefined) {
      this.#deliver(changes);
      return;
    }
    const involved = changes.flatMap(({ current, previous }) => [current, previous]);
    this.#converting = this.#converting
      .then(() => (this.#closed ? undefined : prepareViews(info, involved, { again: false })))
      .then(() => this.#deliver(changes))
      .catch((error: unknown) => this.#fail(toApiError(error).status));
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
      if (this.#values) {
        const { left, change: make } = this.#values;
        this.#hand(transition === 'LEFT' ? left(change) : make(transition, change), change.current);
      } else {
        this.#queue(transition === 'LEFT' ? frames.left(change) : frames.change(transition, change));
      }
    }
  }

  /** Takes a frame for the next round, or writes at once when much has come together. */
  #queue(frame: Uint8Array): void {
    this.#pending.push(frame);
    this.#pendingBytes += frame.length;
    if (this.#pendingBytes >= MAX_PENDING_BYTES) this.#flush();
    else if (!this.#asked) {
      this.#asked = true;
      this.#server.pace.ask(this.#onRound);
    }
  }

  #flush(): void {
    if (this.#pending.length === 0) return;
    const parts = this.#pending;
    const bytes = this.#pendingBytes;
    this.#pending = [];
    this.#pendingBytes = 0;
    this.#write(this.#server.pace.join(parts, bytes));
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
    this.#flush();
    this.#write(this.#plan.frames.bookmark(this.#sent, false));
  }

  /** False when the reader is behind, as `#write`. A value counts as the bytes of its object. */
  #hand(event: StreamDocument, { bytes }: StoredObject): boolean {
    return this.#closed || this.#sink.document!(event, bytes.length) || this.#behind();
  }

  /** False when the reader is behind. */
  #write(bytes: Uint8Array): boolean {
    return this.#closed || this.#sink.write(bytes) || this.#behind();
  }

  /** Disconnects a reader that is too far or too long behind; false when it may catch up. */
  #behind(): boolean {
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
    this.#flush();
    this.#sink.write(this.#plan.frames.error(status));
    this.#end();
  }

  /** Ends the stream normally: the reader watches again from its last revision. */
  #end(): void {
    if (this.#closed) return;
    // What came after is not lost to a reader that has kept up until now.
    if (this.#cancelBehind === undefined && this.#sink.buffered <= MAX_BUFFERED_BYTES) this.#flush();
    this.#close();
    this.#sink.end();
  }

  #close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#pending = [];
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
