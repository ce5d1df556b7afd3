/**
 * Who is notified of which change. Every watch has its own position, the revision up to which it was notified, so that a
 * change is neither missed nor sent twice whenever the watch began.
 */
import { nextTurn } from '@coracle/runtime/clock/next-turn';
import { getOrInsert } from '@coracle/runtime/collections/get-or-insert';
import type { Logger } from '@coracle/runtime/log/log';
import type { History } from './history.ts';
import type { Change, StoreWatch } from './object-store.ts';

/** Changes handed over in one call while a watch catches up with the retained log, and the bytes of their states. */
const REPLAY_CHUNK = 1000;
const REPLAY_BYTES = 256 * 1024;

export type WatchListener = (changes: readonly Change[]) => void;

interface Watch {
  readonly prefix: string;
  readonly listener: WatchListener;
  position: number;
  stopped: boolean;
  /** `waiting` for the retained log to be sent, `behind` while that is done in pieces, then `live`. */
  state: 'waiting' | 'behind' | 'live';
  /** Changes that are still to be sent while it is behind. What comes meanwhile stands at their end, so that the log may be cut. */
  missed: Change[];
}

const after = (revision: number, changes: readonly Change[]): readonly Change[] =>
  changes[0]!.revision > revision ? changes : changes.filter((change) => change.revision > revision);

export class WatchHub {
  readonly #history: History;
  readonly #log: Logger;
  readonly #byPrefix = new Map<string, Set<Watch>>();
  readonly #published: () => number;

  /** `published`: the newest published revision. */
  constructor(history: History, log: Logger, published: () => number) {
    this.#history = history;
    this.#log = log;
    this.#published = published;
  }

  /** Starts a watch after `from`; what the history holds beyond it is sent in a microtask. */
  start(prefix: string, from: number, listener: WatchListener): StoreWatch {
    const watch: Watch = { prefix, listener, position: from, stopped: false, state: 'waiting', missed: [] };
    getOrInsert(this.#byPrefix, prefix, () => new Set()).add(watch);
    queueMicrotask(() => this.#replay(watch));
    return {
      // One that is behind was not notified of what was published since.
      through: () => (watch.state === 'live' ? Math.max(watch.position, this.#published()) : watch.position),
      stop: () => {
        watch.stopped = true;
        const remaining = this.#byPrefix.get(prefix);
        remaining?.delete(watch);
        if (remaining?.size === 0) this.#byPrefix.delete(prefix);
      },
    };
  }

  /** Reports the changes of one commit, grouped by prefix. The history holds them already. */
  publish(changes: ReadonlyMap<string, readonly Change[]>): void {
    for (const [prefix, ofPrefix] of changes) {
      for (const watch of [...(this.#byPrefix.get(prefix) ?? [])]) {
        if (watch.state === 'waiting') this.#replay(watch);
        else if (watch.state === 'live') this.#report(watch, after(watch.position, ofPrefix));
        else watch.missed.push(...after(watch.missed.at(-1)?.revision ?? watch.position, ofPrefix));
      }
    }
  }

  stopAll(): void {
    for (const watches of this.#byPrefix.values()) for (const watch of watches) watch.stopped = true;
    this.#byPrefix.clear();
  }

  #replay(watch: Watch): void {
    if (watch.state !== 'waiting' || watch.stopped) return;
    watch.missed = [...this.#history.since(watch.prefix, watch.position, Number.POSITIVE_INFINITY)];
    const reported = this.#reportSome(watch, 0);
    if (reported === watch.missed.length) {
      watch.state = 'live';
      watch.missed = [];
      return;
    }
    watch.state = 'behind';
    void this.#catchUp(watch, reported);
  }

  /** The rest of the log in pieces, for that many watches may begin at once. */
  async #catchUp(watch: Watch, from: number): Promise<void> {
    let reported = from;
    while (!watch.stopped && reported < watch.missed.length) {
      await nextTurn();
      reported = this.#reportSome(watch, reported);
    }
    watch.missed = [];
    watch.state = 'live';
  }

  /** Sends some of what was missed; returns how much was sent. */
  #reportSome(watch: Watch, from: number): number {
    let to = from;
    for (let bytes = 0; to < watch.missed.length && to - from < REPLAY_CHUNK && bytes < REPLAY_BYTES; to++) {
      const { current, previous } = watch.missed[to]!;
      bytes += current.size + (previous?.size ?? 0);
    }
    this.#report(watch, watch.missed.slice(from, to));
    return to;
  }

  #report(watch: Watch, changes: readonly Change[]): void {
    const last = changes.at(-1);
    if (watch.stopped || !last) return;
    watch.position = last.revision;
    try {
      watch.listener(changes);
    } catch (error) {
      // A listener that throws is a bug of its owner and must not stop the others.
      this.#log.error('watch listener failed', { prefix: watch.prefix, error: String(error) });
    }
  }
}
