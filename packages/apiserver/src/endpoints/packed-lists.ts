/**
 * Lists as gzip, without compressing the same objects again and again. A list is cut into runs of neighbouring objects
 * (`kept-runs.ts`); each run is compressed once, off this thread, for all who ask at the same time, and its bytes are
 * kept for those who ask later.
 */

import { ApiError } from '@coracle/apimachinery/meta/status';
import type { ResourceInfo } from '@coracle/apimachinery/types/resource';
import type { Clock } from '@coracle/runtime/clock/clock';
import { type Compressor, type GzipBlock, gzipOf, storedBlock } from '@coracle/runtime/http/gzip-blocks';
import type { StoredObject } from '../cache/object-store.ts';
import { itemBytes, joinItems } from '../registry/versioned-view.ts';
import { type KeptRun, KeptRuns, type Run, runsOf } from './kept-runs.ts';

/** Bytes that kept runs may hold together, what it takes to remember them included. */
export const MAX_KEPT_BYTES = 16 * 1024 * 1024;
/** A run that nobody asked for in this time goes. */
export const MAX_UNUSED_MS = 60_000;
/** Runs compressed at once, as many as Node has threads for that; of one list, so that the next ones get their turn. */
const AT_ONCE = 4;

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

/** A run that is kept, or being compressed. */
type PackedRun = KeptRun<GzipBlock | Promise<GzipBlock>>;

export class PackedLists {
  readonly #compressor: Compressor;
  readonly #runs: KeptRuns<GzipBlock | Promise<GzipBlock>>;
  #compressing = 0;
  /** Those who wait for a thread; of each list that is being answered at most `AT_ONCE`. */
  readonly #waiting: (() => void)[] = [];

  constructor(compressor: Compressor, clock: Clock, maxBytes: number = MAX_KEPT_BYTES) {
    this.#compressor = compressor;
    this.#runs = new KeptRuns({ clock, maxBytes, maxUnusedMs: MAX_UNUSED_MS });
  }

  /** What the kept runs hold. */
  get keptBytes(): number {
    return this.#runs.bytes;
  }

  /** The gzip body, in parts; at once when all of it was kept. Rejects with ApiError when the client has gone. */
  pack(list: PackableList): readonly Uint8Array[] | Promise<readonly Uint8Array[]> {
    const runs = runsOf(list.info, list.items);
    const blocks: (GzipBlock | undefined)[] = [];
    const missing: number[] = [];
    for (const [at, run] of runs.entries()) {
      const kept = this.#runs.find(run)?.kept;
      const isThere = kept !== undefined && !(kept instanceof Promise);
      blocks.push(isThere ? kept : undefined);
      if (!isThere) missing.push(at);
    }
    if (missing.length === 0) return bodyOf(list, blocks as GzipBlock[]);
    const queue = missing.values();
    const lane = async (): Promise<void> => {
      for (const at of queue) {
        if (list.signal.aborted) throw clientGone(list.signal.reason);
        blocks[at] = await (this.#runs.find(runs[at]!) ?? this.#begin(runs[at]!)).kept;
      }
    };
    const lanes = Array.from({ length: Math.min(AT_ONCE, missing.length) }, lane);
    return Promise.all(lanes).then(() => bodyOf(list, blocks as GzipBlock[]));
  }

  #begin(run: Run): PackedRun {
    const packed = this.#compress(run);
    const begun = this.#runs.add(run, packed, 0);
    packed.then(
      (block) => this.#runs.replace(begun, block, block.bytes.length),
      () => this.#runs.remove(begun),
    );
    return begun;
  }

  async #compress({ info, items, from, to }: Run): Promise<GzipBlock> {
    const objects = items.slice(from, to);
    if (this.#compressing < AT_ONCE) this.#compressing++;
    else await new Promise<void>((go) => this.#waiting.push(go));
    try {
      const pieces = objects.map((object) => itemBytes(info, object));
      return await this.#compressor.block(joinItems(pieces, { head: '', tail: '' }));
    } finally {
      const next = this.#waiting.shift();
      if (next) next();
      else this.#compressing--;
    }
  }
}

/** Nobody reads it; there so that a request that was given up is no failure of the server. */
const clientGone = (cause: unknown): ApiError =>
  new ApiError({ code: 504, reason: 'Timeout', message: 'the client went away' }, { cause });

function bodyOf({ head, tail }: PackableList, blocks: readonly GzipBlock[]): readonly Uint8Array[] {
  const all: GzipBlock[] = [storedBlock(encoder.encode(head))];
  for (let i = 0; i < blocks.length; i++) {
    if (i > 0) all.push(COMMA);
    all.push(blocks[i]!);
  }
  all.push(storedBlock(encoder.encode(tail)));
  return gzipOf(all);
}
