import { lowerBound } from '@coracle/runtime/collections/lower-bound';

/**
 * The current objects of one prefix, found by key and walked in order. Keys are `namespace/name`, ordered as the
 * storage keys of the Kubernetes API server are: by bytes (by UTF-16 units here, which is the same order but between
 * characters above U+FFFF and those from U+E000 on). Walks go over chunks of a bounded size, so that an insert
 * moves a few hundred pointers and not all of them.
 */

/** Entries of one chunk before it is split in two. */
const CHUNK = 512;

export interface Keyed {
  readonly key: string;
}

export class OrderedIndex<T extends Keyed> {
  readonly #byKey = new Map<string, T>();
  readonly #chunks: T[][] = [];

  get size(): number {
    return this.#byKey.size;
  }

  get(key: string): T | undefined {
    return this.#byKey.get(key);
  }

  set(item: T): void {
    const known = this.#byKey.has(item.key);
    this.#byKey.set(item.key, item);
    if (this.#chunks.length === 0) {
      this.#chunks.push([item]);
      return;
    }
    const c = this.#chunkOf(item.key);
    const chunk = this.#chunks[c]!;
    const i = positionIn(chunk, item.key);
    if (known) {
      chunk[i] = item;
      return;
    }
    if (i === chunk.length) chunk.push(item);
    else chunk.splice(i, 0, item);
    if (chunk.length <= CHUNK) return;
    // Keys often come in rising order: leave the left part full then, so that chunks do not stay half empty.
    const cut = i >= chunk.length - 2 && c === this.#chunks.length - 1 ? chunk.length - 1 : chunk.length >> 1;
    this.#chunks.splice(c + 1, 0, chunk.splice(cut));
  }

  delete(key: string): void {
    if (!this.#byKey.delete(key)) return;
    const c = this.#chunkOf(key);
    const chunk = this.#chunks[c]!;
    chunk.splice(positionIn(chunk, key), 1);
    if (chunk.length === 0) this.#chunks.splice(c, 1);
  }

  /** Items with keys in [from, to), in order, some hundred at a time; the index must not change while this is read. */
  *range(from: string, to: string | undefined): Generator<readonly T[], void, void> {
    for (let c = this.#chunkOf(from); c < this.#chunks.length; c++) {
      const chunk = this.#chunks[c]!;
      const first = chunk[0]!.key < from ? positionIn(chunk, from) : 0;
      const isLast = to !== undefined && chunk.at(-1)!.key >= to;
      const end = isLast ? positionIn(chunk, to) : chunk.length;
      if (first < end) yield first === 0 && end === chunk.length ? chunk : chunk.slice(first, end);
      if (isLast) return;
    }
  }

  /** How many keys lie in [from, to). */
  countRange(from: string, to: string | undefined): number {
    const [fromChunk, fromIndex] = this.#position(from);
    const [toChunk, toIndex] = to === undefined ? [this.#chunks.length, 0] : this.#position(to);
    let count = toIndex - fromIndex;
    for (let c = fromChunk; c < toChunk; c++) count += this.#chunks[c]!.length;
    return count;
  }

  #position(key: string): [chunk: number, index: number] {
    if (this.#chunks.length === 0) return [0, 0];
    const c = this.#chunkOf(key);
    return [c, positionIn(this.#chunks[c]!, key)];
  }

  /** The chunk that holds `key`, or would: the last whose first key is not above it. */
  #chunkOf(key: string): number {
    const above = lowerBound(this.#chunks.length, (c) => this.#chunks[c]![0]!.key <= key);
    return Math.max(0, above - 1);
  }
}

/** First index whose key is not below `key`. */
const positionIn = (items: readonly Keyed[], key: string): number =>
  lowerBound(items.length, (i) => items[i]!.key < key);
