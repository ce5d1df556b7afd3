/**
 * Who is told of which change. Every watch has its own position, the revision up to which it has been told, so that a
 * change is neither missed nor told twice whenever the watch began.
 */
import { nextTurn } from '../../base/clock/next-turn.ts';
import type { Logger } from '../../base/log/log.ts';
import type { History } from './history.ts';
import type { Change, StoreWatch } from './object-store.ts';

/** Changes handed over in one call while a watch catches up with the retained log, and the bytes of their states. */
const REPLAY_CHUNK = 1000;
const REPLAY_BYTES = 256 * 1024;

export type WatchListener = (changes: readonly Change[]) => void;
export type ProgressListener = (revision: number) => void;

class Watch {
  readonly prefix: string;
  readonly listener: WatchListener;
  readonly onProgress: ProgressListener | undefined;
  position: number;
  stopped = false;
  /** `waiting` for the retained log to be told, `behind` while that is done in pieces, then `live`. */
  state: 'waiting' | 'behind' | 'live' = 'waiting';
  /** Changes that are still to be told while it is behind. What comes meanwhile stands at their end, so that the log may be cut. */
  missed: Change[] = [];

  constructor(prefix: string, from: number, listener: WatchListener, onProgress: ProgressListener | undefined) {
    this.prefix = prefix;
    this.position = from;
    this.listener = listener;
    this.onProgress = onProgress;
  }

  /** Notes what comes while it is behind; what stands in `missed` already is not told again. */
  miss(changes: readonly Change[]): void {
    const last = this.missed.at(-1)?.revision ?? this.position;
    for (const change of changes) if (change.revision > last) this.missed.push(change);
  }
}

export class WatchHub {
  readonly #history: History;
  readonly #log: Logger;
  readonly #byPrefix = new Map<string, Set<Watch>>();
  readonly #progress = new Set<Watch>();

  constructor(history: History, log: Logger) {
    this.#history = history;
    this.#log = log;
  }

  /** Starts a watch after `from`; what the history holds beyond it is told in a microtask. */
  start(prefix: string, from: number, listeners: { changes: WatchListener; progress?: ProgressListener }): StoreWatch {
    const watch = new Watch(prefix, from, listeners.changes, listeners.progress);
    let watches = this.#byPrefix.get(prefix);
    if (!watches) {
      watches = new Set();
      this.#byPrefix.set(prefix, watches);
    }
    watches.add(watch);
    if (watch.onProgress) this.#progress.add(watch);
    queueMicrotask(() => this.#replay(watch));
    return {
      stop: () => {
        watch.stopped = true;
        this.#progress.delete(watch);
        const remaining = this.#byPrefix.get(prefix);
        remaining?.delete(watch);
        if (remaining?.size === 0) this.#byPrefix.delete(prefix);
      },
    };
  }

  /** Tells the changes of one commit, grouped by prefix, then the progress. The history holds them already. */
  publish(changes: ReadonlyMap<string, readonly Change[]>, revision: number): void {
    for (const [prefix, ofPrefix] of changes) {
      for (const watch of [...(this.#byPrefix.get(prefix) ?? [])]) {
        if (watch.state === 'waiting') this.#replay(watch);
        else if (watch.state === 'behind') watch.miss(ofPrefix);
        else if (watch.position < ofPrefix[0]!.revision) this.#tell(watch, ofPrefix);
        else
          this.#tell(
            watch,
            ofPrefix.filter((change) => change.revision > watch.position),
          );
      }
    }
    for (const watch of [...this.#progress]) {
      if (watch.state === 'waiting') this.#replay(watch);
      // One that is behind has not been told of it.
      if (watch.state !== 'live') continue;
      // A watch that waits for a revision still to come has nothing to report.
      if (watch.stopped || watch.position > revision) continue;
      this.#call(watch, () => watch.onProgress?.(revision));
    }
  }

  stopAll(): void {
    for (const watches of this.#byPrefix.values()) for (const watch of watches) watch.stopped = true;
    this.#byPrefix.clear();
    this.#progress.clear();
  }

  #replay(watch: Watch): void {
    if (watch.state !== 'waiting' || watch.stopped) return;
    watch.missed = [...this.#history.since(watch.prefix, watch.position, Number.POSITIVE_INFINITY)];
    const told = this.#tellSome(watch, 0);
    if (told === watch.missed.length) {
      watch.state = 'live';
      watch.missed = [];
      return;
    }
    watch.state = 'behind';
    void this.#catchUp(watch, told);
  }

  /** The rest of the log in pieces, for that many watches may begin at once. */
  async #catchUp(watch: Watch, from: number): Promise<void> {
    let told = from;
    while (!watch.stopped && told < watch.missed.length) {
      await nextTurn();
      told = this.#tellSome(watch, told);
    }
    watch.missed = [];
    watch.state = 'live';
  }

  /** Tells some of what was missed; returns how much has been told. */
  #tellSome(watch: Watch, from: number): number {
    let to = from;
    for (let bytes = 0; to < watch.missed.length && to - from < REPLAY_CHUNK && bytes < REPLAY_BYTES; to++) {
      const { current, previous } = watch.missed[to]!;
      bytes += current.bytes.length + (previous?.bytes.length ?? 0);
    }
    this.#tell(watch, watch.missed.slice(from, to));
    return to;
  }

  #tell(watch: Watch, changes: readonly Change[]): void {
    const last = changes.at(-1);
    if (watch.stopped || !last) return;
    watch.position = last.revision;
    this.#call(watch, () => watch.listener(changes));
  }

  /** A listener that throws is a bug of its owner and must not stop the others. */
  #call(watch: Watch, listener: () => void): void {
    try {
      listener();
    } catch (error) {
      this.#log.error('watch listener failed', { prefix: watch.prefix, error: String(error) });
    }
  }
}
