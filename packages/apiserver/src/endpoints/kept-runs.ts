/**
 * What was made of runs of neighbouring objects of lists, kept for those who ask for the same objects again. Where runs
 * end follows from the objects in them, so that a write changes the one run it falls into, and lists of other pages,
 * namespaces or revisions share the rest.
 *
 * What is kept is made of bytes of objects, never who may read them or which of them belong to a list: a run is looked up
 * with the objects that the list of this request has found.
 */
import type { ResourceInfo } from '@coracle/apimachinery/types/resource';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { StoredObject } from '../cache/object-store.ts';

/** Size of a run in the mean, and at most when no single object is larger. */
const RUN_BYTES = 128 * 1024;
const MAX_RUN_BYTES = 4 * RUN_BYTES;
/** Roughly what remembering a run takes, and one object of it. */
const RUN_OVERHEAD = 256;
const OBJECT_OVERHEAD = 8;

/** Neighbours of a list as `info` shows them: the items from `from` on, without `to`. */
export interface Run {
  readonly info: ResourceInfo;
  readonly items: readonly StoredObject[];
  readonly from: number;
  readonly to: number;
  /** Bytes of the objects as they are stored. */
  readonly bytes: number;
}

export interface KeptRun<Kept> {
  readonly name: string;
  /** A revision names one state of one object for ever. */
  readonly revisions: readonly number[];
  kept: Kept;
  /** Bytes of `kept` that count. */
  size: number;
  usedAt: number;
}

export interface KeptRunsOptions {
  readonly clock: Clock;
  /** What all runs may hold together, what it takes to remember them included. */
  readonly maxBytes: number;
  /** A run that nobody asked for in this time goes. */
  readonly maxUnusedMs: number;
}

export class KeptRuns<Kept> {
  readonly #options: KeptRunsOptions;
  /** The longest unused first. */
  readonly #runs = new Map<string, KeptRun<Kept>>();
  readonly #resources = new WeakMap<ResourceInfo, number>();
  #resourceCount = 0;
  #bytes = 0;
  #sweeping = false;

  constructor(options: KeptRunsOptions) {
    this.#options = options;
  }

  /** What the runs hold. */
  get bytes(): number {
    return this.#bytes;
  }

  /** The run of these very objects. */
  find(run: Run): KeptRun<Kept> | undefined {
    const name = this.#nameOf(run);
    const found = this.#runs.get(name);
    if (!found) return undefined;
    const { items, from, to } = run;
    for (let i = from; i < to; i++) if (found.revisions[i - from] !== items[i]!.revision) return undefined;
    found.usedAt = this.#options.clock.monotonic();
    this.#runs.delete(name);
    this.#runs.set(name, found);
    return found;
  }

  /** Keeps what was made of a run, in place of what has its name. */
  add(run: Run, kept: Kept, size: number): KeptRun<Kept> {
    const name = this.#nameOf(run);
    const revisions = run.items.slice(run.from, run.to).map(({ revision }) => revision);
    const added: KeptRun<Kept> = { name, revisions, kept, size, usedAt: this.#options.clock.monotonic() };
    this.#drop(name);
    this.#runs.set(name, added);
    this.#bytes += costOf(added);
    this.#makeRoom();
    this.#sweepLater();
    return added;
  }

  /** Something else is kept of a run from now on, wherever the run is. */
  replace(run: KeptRun<Kept>, kept: Kept, size: number): void {
    const isHere = this.#runs.get(run.name) === run;
    if (isHere) this.#bytes += size - run.size;
    run.kept = kept;
    run.size = size;
    if (isHere) this.#makeRoom();
  }

  remove(run: KeptRun<Kept>): void {
    if (this.#runs.get(run.name) === run) this.#drop(run.name);
  }

  #nameOf({ info, items, from, to }: Run): string {
    const resource = this.#resources.get(info) ?? this.#resourceCount++;
    this.#resources.set(info, resource);
    return `${resource} ${items[from]!.revision} ${to - from}`;
  }

  #makeRoom(): void {
    for (const name of this.#runs.keys()) {
      if (this.#bytes <= this.#options.maxBytes) return;
      this.#drop(name);
    }
  }

  #sweepLater(): void {
    if (this.#sweeping || this.#runs.size === 0) return;
    this.#sweeping = true;
    const { clock, maxUnusedMs } = this.#options;
    clock.schedule(maxUnusedMs, () => {
      this.#sweeping = false;
      const old = clock.monotonic() - maxUnusedMs;
      for (const [name, { usedAt }] of this.#runs) {
        if (usedAt > old) break;
        this.#drop(name);
      }
      this.#sweepLater();
    });
  }

  #drop(name: string): void {
    const run = this.#runs.get(name);
    if (!run) return;
    this.#runs.delete(name);
    this.#bytes -= costOf(run);
  }
}

const costOf = ({ revisions, size }: KeptRun<unknown>): number =>
  size + RUN_OVERHEAD + OBJECT_OVERHEAD * revisions.length;

/** The runs of a list, each with where it ends: after an object whose revision says so, the likelier the larger it is. */
export function runsOf(info: ResourceInfo, items: readonly StoredObject[]): Run[] {
  const runs: Run[] = [];
  let from = 0;
  let size = 0;
  for (let i = 0; i < items.length; i++) {
    const { revision, size: bytes } = items[i]!;
    size += bytes;
    // Multiplied so, numbers that follow one another are spread evenly over 32 bits.
    const spread = Math.imul(revision, 0x9e3779b1) >>> 0;
    const odds = (bytes / RUN_BYTES) * 2 ** 32;
    if (spread >= odds && size < MAX_RUN_BYTES && i + 1 < items.length) continue;
    runs.push({ info, items, from, to: i + 1, bytes: size });
    from = i + 1;
    size = 0;
  }
  return runs;
}
