/**
 * Writes whole bodies to HTTP/1.1 responses and HTTP/2 streams. Small ones go out at once; of a large one a block at a
 * time is written, the next when the far end has taken it: encrypted all at once it would be in memory twice more.
 */
import type { ServerResponse } from 'node:http';
import type { ServerHttp2Stream } from 'node:http2';

export type BodyOut = ServerResponse | ServerHttp2Stream;

/**
 * Bodies up to this size are one write, larger ones are written in blocks of it. Larger blocks cost up to a fifth more of
 * the processor (HTTP/2 copies all that is sent in one go, which then is in no cache), smaller ones more calls.
 */
export const BLOCK_BYTES = 64 * 1024;
/** A part this large is sent from where it lies; smaller ones are joined, so that thousands do not become as many writes. */
const DIRECT_BYTES = BLOCK_BYTES / 2;
/** Blocks kept for the next body: fresh memory for each would cost more than the copying. */
const MAX_SPARE = 32;
const spare: Buffer[] = [];

/** The bytes of all parts together. */
export function sizeOf(parts: readonly Uint8Array[]): number {
  let size = 0;
  for (const part of parts) size += part.length;
  return size;
}

/** Writes the parts, `size` bytes in all, and ends the body. The parts must not change before the far end has them. */
export function writeParts(out: BodyOut, parts: readonly Uint8Array[], size: number): void {
  if (size <= BLOCK_BYTES) {
    out.end(parts.length === 1 ? parts[0]! : Buffer.concat(parts, size));
    return;
  }
  const blocks = new Blocks(parts, size);
  const writeOn = (): void => {
    while (!out.destroyed) {
      const { block, borrowed } = blocks.next();
      const taken = (error?: Error | null): void => {
        // After a failure somebody may still hold on to the memory.
        if (borrowed && !error && spare.length < MAX_SPARE) spare.push(borrowed);
      };
      if (blocks.isDone) {
        out.off('drain', writeOn);
        out.end(block, taken);
        return;
      }
      if (!out.write(block, taken)) return;
    }
  };
  out.on('drain', writeOn);
  writeOn();
}

/** Cuts parts into blocks. */
class Blocks {
  readonly #parts: readonly Uint8Array[];
  /** Bytes not given out yet. */
  #left: number;
  #index = 0;
  /** Bytes of the part at `#index` that were given out. */
  #offset = 0;

  constructor(parts: readonly Uint8Array[], size: number) {
    this.#parts = parts;
    this.#left = size;
  }

  get isDone(): boolean {
    return this.#left === 0;
  }

  /** The next block; `borrowed` is its memory when that may be used again after it was sent. */
  next(): { readonly block: Uint8Array; readonly borrowed: Buffer | undefined } {
    const first = this.#rest();
    if (first.length >= DIRECT_BYTES) {
      const block = first.length <= BLOCK_BYTES ? first : first.subarray(0, BLOCK_BYTES);
      this.#take(block.length);
      return { block, borrowed: undefined };
    }
    const memory = spare.pop() ?? Buffer.allocUnsafeSlow(BLOCK_BYTES);
    let filled = 0;
    while (this.#left > 0 && filled < BLOCK_BYTES) {
      const rest = this.#rest();
      if (rest.length >= DIRECT_BYTES) break;
      const fits = rest.length <= BLOCK_BYTES - filled ? rest : rest.subarray(0, BLOCK_BYTES - filled);
      // A call for a comma and a brace costs more than the two bytes.
      if (fits.length <= 2) for (let i = 0; i < fits.length; i++) memory[filled + i] = fits[i]!;
      else memory.set(fits, filled);
      filled += fits.length;
      this.#take(fits.length);
    }
    return { block: filled === BLOCK_BYTES ? memory : memory.subarray(0, filled), borrowed: memory };
  }

  #rest(): Uint8Array {
    const part = this.#parts[this.#index]!;
    return this.#offset === 0 ? part : part.subarray(this.#offset);
  }

  #take(bytes: number): void {
    this.#left -= bytes;
    this.#offset += bytes;
    if (this.#offset < this.#parts[this.#index]!.length) return;
    this.#offset = 0;
    this.#index++;
  }
}
