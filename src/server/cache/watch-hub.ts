/**
 * Who is told of which change. Every watch has its own position, the revision up to which it has been told, so that a
 * change is neither missed nor told twice whenever the watch began.
 */
import type { Logger } from '../../base/log/log.ts';
import type { History } from './history.ts';
import type { Change, StoreWatch } from './object-store.ts';

/** Changes handed over in one call while a watch catches up with the retained log. */
const REPLAY_CHUNK = 1000;

export type WatchListener = (changes: readonly Change[]) => void;
export type ProgressListener = (revision: number) => void;

class Watch {
  readonly prefix: string;
  readonly listener: WatchListener;
  readonly onProgress: ProgressListener | undefined;
  position: number;
  stopped = false;
  /** False until the retained log has been told. */
  live = false;

  constructor(prefix: string, from: number, listener: WatchListener, onProgress: ProgressListener | undefined) {
    this.prefix = prefix;
    this.position = from;
    this.listener = listener;
    this.onProgress = onProgress;
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
        if (!watch.live) this.#replay(watch);
        else if (watch.position < ofPrefix[0]!.revision) this.#tell(watch, ofPrefix);
        else
          this.#tell(
            watch,
            ofPrefix.filter((change) => change.revision > watch.position),
          );
      }
    }
    for (const watch of [...this.#progress]) {
      if (!watch.live) this.#replay(watch);
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
    if (watch.live || watch.stopped) return;
    watch.live = true;
    const missed = [...this.#history.since(watch.prefix, watch.position, Number.POSITIVE_INFINITY)];
    for (let i = 0; i < missed.length; i += REPLAY_CHUNK) this.#tell(watch, missed.slice(i, i + REPLAY_CHUNK));
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
