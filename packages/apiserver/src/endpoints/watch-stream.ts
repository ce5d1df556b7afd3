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

import { joinBytes } from '@coracle/apimachinery/meta/join-bytes';
import { ApiError, type Status } from '@coracle/apimachinery/meta/status';
import { type ResourceInfo, storagePrefix } from '@coracle/apimachinery/types/resource';
import { nextTurn } from '@coracle/runtime/clock/next-turn';
import type { ByteSink, ByteStream, StreamDocument } from '@coracle/runtime/http/seam';
import type { Change, StoredObject, StoreWatch } from '../cache/object-store.ts';
import { BytesPace } from '../registry/filter-objects.ts';
import { waitForRevision } from '../registry/resource-version.ts';
import type { Selection } from '../registry/selection.ts';
import { prepareViews } from '../registry/versioned-view.ts';
import type { Server } from './exchange.ts';
import { toApiError } from './responses.ts';
import type { Frame, FrameEncoder, FrameType, ValueEncoder } from './watch-frames.ts';

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
  /** Below 0: the time was up before it began, which is reported as an event. */
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
  /** The last batch of changes that waits for a conversion, or for the frame of a large object; how many do, of what size. */
  #line: Promise<void> = Promise.resolve();
  #inLine = 0;
  #inLineBytes = 0;
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
    if (timeoutMs < 0) {
      this.#fail(new ApiError({ code: 500, reason: 'InternalError', message: 'context deadline exceeded' }).status);
      return;
    }
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

  /** Rejects with ApiError 410 when the log no longer reaches back to where the live part is to begin. */
  async #run(): Promise<void> {
    const { info, from, initialState, bookmarks } = this.#plan;
    const { store } = this.#server.registry;
    if (initialState) await this.#sendInitialState();
    else this.#sent = from === 0 ? store.revision() : from;
    if (this.#closed) return;
    this.#watch = store.watch(storagePrefix(info), this.#sent, (changes) => this.#receive(changes));
    if (bookmarks) this.#scheduleBookmark();
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
    const { items, revision } = registry.store.list(storagePrefix(info), namespace === '' ? {} : { namespace });
    // What came in while the others were being converted.
    if (info.remote !== undefined) await prepareViews(info, items, { again: false });
    let chunk: Uint8Array[] = [];
    let bytes = 0;
    const flush = async (): Promise<void> => {
      if (bytes === 0) return;
      const piece = chunk.length === 1 ? chunk[0]! : joinBytes(chunk);
      chunk = [];
      bytes = 0;
      if (!this.#write(piece)) await this.#sink.drained();
    };
    const pace = new BytesPace();
    for (const item of items) {
      if (pace.due(item, selection.everything || selection.parses(item))) await nextTurn();
      if (this.#closed) return;
      const preparing = info.remote === undefined ? prepareViews(info, [item], { again: false }) : undefined;
      if (preparing) await preparing;
      if (this.#closed) return;
      if (!selection.matches(item)) continue;
      if (this.#values) {
        if (!this.#hand(this.#values.initial(item), item)) await this.#sink.drained();
        continue;
      }
      const making = frames.initial(item);
      const encoded = making instanceof Promise ? await making : making;
      chunk.push(encoded);
      bytes += encoded.length;
      if (bytes >= INITIAL_CHUNK_BYTES) await flush();
    }
    if (this.#closed) return;
    if (bookmarks) {
      const end = frames.bookmark(revision, true);
      chunk.push(end);
      bytes += end.length;
    }
    await flush();
    this.#sent = revision;
  }

  /** Changes that must be converted first wait in line, so that their order stays. */
  #receive(changes: readonly Change[]): void {
    const { info } = this.#plan;
    if (info.remote === undefined && this.#inLine === 0) {
      const rest = this.#deliver(changes);
      if (rest) this.#standInLine(changes, () => rest);
      return;
    }
    const involved = changes.flatMap(({ current, previous }) => [current, previous]);
    this.#standInLine(changes, async () => {
      if (info.remote !== undefined && !this.#closed) await prepareViews(info, involved, { again: false });
      await this.#deliver(changes);
    });
  }

  #standInLine(changes: readonly Change[], work: () => Promise<void>): void {
    const bytes = changes.reduce((sum, { current }) => sum + current.size, 0);
    // The frames of what waits already are more than a reader may be behind.
    if (this.#inLineBytes > MAX_BUFFERED_BYTES) {
      this.#end();
      return;
    }
    this.#inLine++;
    this.#inLineBytes += bytes;
    this.#line = this.#line
      .then(work)
      .catch((error: unknown) => this.#fail(toApiError(error).status))
      .finally(() => {
        this.#inLine--;
        this.#inLineBytes -= bytes;
      });
  }

  /** Hands changes on, from the `at`-th; a promise where one of them takes long to write: the others wait for it. */
  #deliver(changes: readonly Change[], at = 0): Promise<void> | undefined {
    for (let i = at; i < changes.length; i++) {
      if (this.#closed) return undefined;
      const change = changes[i]!;
      // A watch from a future revision hears nothing until that revision has passed.
      if (change.revision <= this.#plan.from) continue;
      const frame = this.#frameOf(change);
      if (frame instanceof Promise) {
        return frame.then((made) => {
          this.#pass(change, made);
          return this.#deliver(changes, i + 1);
        });
      }
      this.#pass(change, frame);
    }
    return undefined;
  }

  #pass({ revision }: Change, frame: Uint8Array | undefined): void {
    if (this.#closed) return;
    this.#sent = Math.max(this.#sent, revision);
    if (frame) this.#queue(frame);
  }

  /** The frame of a change; undefined where its reader is sent nothing of it, or has been handed it as a value. */
  #frameOf(change: Change): Frame | undefined {
    const { namespace, selection, frames } = this.#plan;
    if (namespace !== '' && change.current.namespace !== namespace) return undefined;
    const transition = transitionOf(change, selection);
    if (transition === undefined) return undefined;
    this.#server.metrics.watchEvent();
    if (!this.#values) return transition === 'LEFT' ? frames.left(change) : frames.change(transition, change);
    const { left, change: make } = this.#values;
    this.#hand(transition === 'LEFT' ? left(change) : make(transition, change), change.current);
    return undefined;
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
    this.#pending = [];
    this.#pendingBytes = 0;
    this.#write(this.#server.pace.join(parts));
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
    // A revision counts as sent only when its changes are through the conversion, and none waits for a frame.
    if (this.#plan.info.remote === undefined && this.#inLine === 0) {
      this.#sent = Math.max(this.#sent, this.#watch.through());
    }
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
