/**
 * Lists as gzip, without compressing the same objects again and again. A list is cut into runs of neighbouring objects;
 * each run is compressed once, off this thread, for all who ask at the same time, and its bytes are kept for those who
 * ask later. Where runs end follows from the objects in them, so that a write changes the one run it falls into, and
 * lists of other pages, namespaces or revisions share the rest.
 *
 * What is kept are bytes of objects, never who may read them or which of them belong to a list: a run is looked up with
 * the objects that the list of this request has found.
 */
import type { ResourceInfo } from '../../api/kinds/resource.ts';
import { ApiError } from '../../api/meta/status.ts';
import type { Clock } from '../../base/clock/clock.ts';
import { type Compressor, type GzipBlock, gzipOf, storedBlock } from '../../base/http/gzip-blocks.ts';
import type { StoredObject } from '../cache/object-store.ts';
import { itemBytes, joinItems } from '../registry/versioned-view.ts';

/** Bytes that kept runs may hold together, what it takes to remember them included. */
export const MAX_KEPT_BYTES = 16 * 1024 * 1024;
/** A run that nobody asked for in this time goes. */
export const MAX_UNUSED_MS = 60_000;
/** Size of a run in the mean, and at most when no single object is larger. */
const RUN_BYTES = 128 * 1024;
const MAX_RUN_BYTES = 4 * RUN_BYTES;
/** Runs compressed at once, as many as Node has threads for that; of one list, so that the next ones get their turn. */
const AT_ONCE = 4;
/** Roughly what remembering a run takes, and one object of it. */
const RUN_OVERHEAD = 256;
const OBJECT_OVERHEAD = 8;

const encoder = new TextEncoder();
const COMMA = storedBlock(encoder.encode(','));

/** A list as the client will see it: the items between `head` and `tail`. */
export interface PackableList {
  readonly info: ResourceInfo;
  readonly items: readonly StoredObject[];
  readonly head: string;
  readonly tail: string;
  /** Aborted when the client has gone: then no further run is begun. */
  readonly signal: AbortSignal;
}

/** A run that is kept, or being compressed. A revision names one state of one object for ever. */
interface KeptRun {
  readonly revisions: readonly number[];
  packed: GzipBlock | Promise<GzipBlock>;
  usedAt: number;
}

export interface PackedLists {
  /** The gzip body, in parts; at once when all of it was kept. Rejects with ApiError when the client has gone. */
  pack(list: PackableList): readonly Uint8Array[] | Promise<readonly Uint8Array[]>;
  /** What the kept runs hold. */
  readonly keptBytes: number;
}

export function createPackedLists(options: {
  readonly compressor: Compressor;
  readonly clock: Clock;
  /** `MAX_KEPT_BYTES` when not given. */
  readonly maxBytes?: number;
}): PackedLists {
  return new RunCache(options.compressor, options.clock, options.maxBytes ?? MAX_KEPT_BYTES);
}

class RunCache implements PackedLists {
  readonly #compressor: Compressor;
  readonly #clock: Clock;
  readonly #maxBytes: number;
  /** The longest unused first. */
  readonly #runs = new Map<string, KeptRun>();
  readonly #resources = new WeakMap<ResourceInfo, number>();
  #resourceCount = 0;
  #bytes = 0;
  #sweeping = false;
  #compressing = 0;
  /** Those who wait for a thread; of each list that is being answered at most `AT_ONCE`. */
  readonly #waiting: (() => void)[] = [];

  constructor(compressor: Compressor, clock: Clock, maxBytes: number) {
    this.#compressor = compressor;
    this.#clock = clock;
    this.#maxBytes = maxBytes;
  }

  get keptBytes(): number {
    return this.#bytes;
  }

  pack(list: PackableList): readonly Uint8Array[] | Promise<readonly Uint8Array[]> {
    const ends = endsOfRuns(list.items);
    const blocks: (GzipBlock | undefined)[] = [];
    const missing: number[] = [];
    for (let run = 0; run < ends.length; run++) {
      const kept = this.#find(list, run === 0 ? 0 : ends[run - 1]!, ends[run]!)?.packed;
      const isThere = kept !== undefined && !(kept instanceof Promise);
      blocks.push(isThere ? kept : undefined);
      if (!isThere) missing.push(run);
    }
    if (missing.length === 0) return bodyOf(list, blocks as GzipBlock[]);
    return this.#packMissing(list, { ends, blocks, missing });
  }

  async #packMissing(
    list: PackableList,
    {
      ends,
      blocks,
      missing,
    }: { readonly ends: readonly number[]; readonly blocks: (GzipBlock | undefined)[]; readonly missing: number[] },
  ): Promise<readonly Uint8Array[]> {
    let next = 0;
    const lane = async (): Promise<void> => {
      while (next < missing.length) {
        if (list.signal.aborted) throw clientGone(list.signal.reason);
        const run = missing[next++]!;
        const from = run === 0 ? 0 : ends[run - 1]!;
        blocks[run] = await (this.#find(list, from, ends[run]!) ?? this.#begin(list, from, ends[run]!)).packed;
      }
    };
    await Promise.all(Array.from({ length: Math.min(AT_ONCE, missing.length) }, lane));
    return bodyOf(list, blocks as GzipBlock[]);
  }

  /** The run of these very objects, if somebody asked for it before. */
  #find({ info, items }: PackableList, from: number, to: number): KeptRun | undefined {
    const name = this.#nameOf(info, items[from]!, to - from);
    const run = this.#runs.get(name);
    if (!run) return undefined;
    for (let i = from; i < to; i++) if (run.revisions[i - from] !== items[i]!.revision) return undefined;
    run.usedAt = this.#clock.monotonic();
    this.#runs.delete(name);
    this.#runs.set(name, run);
    return run;
  }

  #begin({ info, items }: PackableList, from: number, to: number): KeptRun {
    const name = this.#nameOf(info, items[from]!, to - from);
    const objects = items.slice(from, to);
    const packed = this.#compress(info, objects);
    const run: KeptRun = {
      revisions: objects.map(({ revision }) => revision),
      packed,
      usedAt: this.#clock.monotonic(),
    };
    this.#drop(name);
    this.#runs.set(name, run);
    packed.then(
      (block) => {
        run.packed = block;
        if (this.#runs.get(name) !== run) return;
        this.#bytes += costOf(run, block);
        this.#makeRoom();
        this.#sweepLater();
      },
      () => {
        if (this.#runs.get(name) === run) this.#runs.delete(name);
      },
    );
    return run;
  }

  async #compress(info: ResourceInfo, objects: readonly StoredObject[]): Promise<GzipBlock> {
    if (this.#compressing < AT_ONCE) this.#compressing++;
    else await new Promise<void>((go) => this.#waiting.push(go));
    try {
      const items = objects.map((object) => itemBytes(info, object));
      return await this.#compressor.block(joinItems(items, { head: '', tail: '' }));
    } finally {
      const next = this.#waiting.shift();
      if (next) next();
      else this.#compressing--;
    }
  }

  #nameOf(info: ResourceInfo, first: StoredObject, count: number): string {
    let resource = this.#resources.get(info);
    if (resource === undefined) {
      resource = this.#resourceCount++;
      this.#resources.set(info, resource);
    }
    return `${resource} ${first.revision} ${count}`;
  }

  #makeRoom(): void {
    for (const name of this.#runs.keys()) {
      if (this.#bytes <= this.#maxBytes) return;
      this.#drop(name);
    }
  }

  #sweepLater(): void {
    if (this.#sweeping || this.#runs.size === 0) return;
    this.#sweeping = true;
    this.#clock.schedule(MAX_UNUSED_MS, () => {
      this.#sweeping = false;
      const old = this.#clock.monotonic() - MAX_UNUSED_MS;
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
    if (!(run.packed instanceof Promise)) this.#bytes -= costOf(run, run.packed);
  }
}

const costOf = ({ revisions }: KeptRun, { bytes }: GzipBlock): number =>
  bytes.length + RUN_OVERHEAD + OBJECT_OVERHEAD * revisions.length;

/** Nobody reads it; there so that a request that was given up is no failure of the server. */
const clientGone = (cause: unknown): ApiError =>
  new ApiError({ code: 504, reason: 'Timeout', message: 'the client went away' }, { cause });

/** Where each run ends: after an object whose revision says so, the likelier the larger the object is. */
function endsOfRuns(items: readonly StoredObject[]): number[] {
  const ends: number[] = [];
  let size = 0;
  for (let i = 0; i < items.length; i++) {
    const { revision, bytes } = items[i]!;
    size += bytes.length;
    // Multiplied so, numbers that follow one another are spread evenly over 32 bits.
    const spread = Math.imul(revision, 0x9e3779b1) >>> 0;
    const odds = (bytes.length / RUN_BYTES) * 2 ** 32;
    if (spread >= odds && size < MAX_RUN_BYTES) continue;
    ends.push(i + 1);
    size = 0;
  }
  if (size > 0) ends.push(items.length);
  return ends;
}

function bodyOf({ head, tail }: PackableList, blocks: readonly GzipBlock[]): readonly Uint8Array[] {
  const all: GzipBlock[] = [storedBlock(encoder.encode(head))];
  for (let i = 0; i < blocks.length; i++) {
    if (i > 0) all.push(COMMA);
    all.push(blocks[i]!);
  }
  all.push(storedBlock(encoder.encode(tail)));
  return gzipOf(all);
}
