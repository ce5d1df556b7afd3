/**
 * A gzip body (RFC 1952) put together from blocks that were compressed apart, at other times and for other bodies. Raw
 * deflate streams may follow one another where each ends at the border of a byte and none but the last says that it is
 * the last; the checksum of the whole follows from theirs and their lengths.
 */

/** Bytes that are compressed, or wrapped as they are, and can stand anywhere in a gzip body. */
export interface GzipBlock {
  /** Deflate blocks up to the border of a byte (`Z_SYNC_FLUSH`), none of them marked as the last (RFC 1951). */
  readonly bytes: Uint8Array;
  /** Bytes they stand for. */
  readonly size: number;
  /** CRC-32 of those. */
  readonly crc: number;
  /** What the checksum of the bytes before them is multiplied by; follows from `size`. */
  readonly power: number;
}

/** A block of bytes that were deflated so. */
export const gzipBlock = (block: Omit<GzipBlock, 'power'>): GzipBlock => ({ ...block, power: powerOf(block.size) });

/** What compresses, off the thread that asks. */
export interface Compressor {
  /** The gzip body of `bytes`, which must not change before. */
  gzip(bytes: Uint8Array): Promise<Uint8Array>;
  /** `bytes` as a block; they must not change before. Memory of the block is not shared with anything else. */
  block(bytes: Uint8Array): Promise<GzipBlock>;
}

/** Magic, deflate, no flags, no time, "compressed for speed", no system in particular. */
const HEADER = Uint8Array.of(0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 255);
/** An empty block of fixed codes that is marked as the last. */
const LAST_BLOCK = [0x03, 0x00];
/** Most bytes that one stored block holds. */
const MAX_STORED = 0xffff;

/** Few bytes as a block, without compressing them. */
export function storedBlock(bytes: Uint8Array): GzipBlock {
  const count = Math.ceil(bytes.length / MAX_STORED);
  const out = new Uint8Array(bytes.length + 5 * count);
  for (let i = 0, at = 0; i < count; i++) {
    const part = bytes.subarray(i * MAX_STORED, (i + 1) * MAX_STORED);
    const inverted = ~part.length;
    out.set([0, part.length & 0xff, part.length >> 8, inverted & 0xff, (inverted >> 8) & 0xff], at);
    out.set(part, at + 5);
    at += 5 + part.length;
  }
  return gzipBlock({ bytes: out, size: bytes.length, crc: crc32(bytes) });
}

/** The gzip body of the blocks, in parts: their bytes stay where they are. */
export function gzipOf(blocks: readonly GzipBlock[]): Uint8Array[] {
  const parts: Uint8Array[] = [HEADER];
  let crc = 0;
  let size = 0;
  for (const block of blocks) {
    parts.push(block.bytes);
    crc = (product(block.power, crc) ^ block.crc) >>> 0;
    size += block.size;
  }
  const tail = new Uint8Array(LAST_BLOCK.length + 8);
  tail.set(LAST_BLOCK);
  const view = new DataView(tail.buffer, LAST_BLOCK.length);
  view.setUint32(0, crc, true);
  view.setUint32(4, size % 2 ** 32, true);
  parts.push(tail);
  return parts;
}

/** The polynomial of CRC-32, its lowest power in the highest bit as everywhere here. */
const POLYNOMIAL = 0xedb88320;
const ONE = 0x80000000;

const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ POLYNOMIAL : crc >>> 1;
  return crc;
});

function crc32(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  for (let i = 0; i < bytes.length; i++) crc = TABLE[(crc ^ bytes[i]!) & 0xff]! ^ (crc >>> 8);
  return (crc ^ 0xffffffff) >>> 0;
}

/** Bytes behind a text multiply its checksum by a power of x, as a polynomial over the field of two elements. */
function powerOf(bytes: number): number {
  let power = ONE;
  for (let left = bytes, i = 0; left > 0; left = Math.floor(left / 2), i++) {
    if (left % 2 === 1) power = product(power, BYTES_POWERS[i]!);
  }
  return power;
}

/** Product of two polynomials, modulo that of CRC-32. */
function product(a: number, b: number): number {
  let sum = 0;
  let shifted = b;
  for (let rest = a; rest !== 0; rest <<= 1) {
    if (rest < 0 || rest >= ONE) sum ^= shifted;
    shifted = shifted & 1 ? (shifted >>> 1) ^ POLYNOMIAL : shifted >>> 1;
  }
  return sum >>> 0;
}

/** x to the power of 8 times 2^i: what 2^i bytes multiply by. Enough for any length that a number can hold. */
const BYTES_POWERS: readonly number[] = (() => {
  const powers = [ONE >>> 8];
  while (powers.length < 53) powers.push(product(powers.at(-1)!, powers.at(-1)!));
  return powers;
})();
