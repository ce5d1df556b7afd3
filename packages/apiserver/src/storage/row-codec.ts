/**
 * Rows packed into one ArrayBuffer, so that a batch crosses to the worker, or a chunk comes back, by handing over its
 * memory. Layout: per row a fixed head of 24 bytes (revision f64, previous f64, key length u32 with the created flag in
 * its top bit, value length u32 where all ones means a tombstone), all heads first, then keys and values in row order.
 */
import type { Row } from './backend.ts';

const HEAD = 24;
const CREATED = 0x8000_0000;
const TOMBSTONE = 0xffff_ffff;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Bytes that suffice to pack these rows. */
export function packedSize(rows: readonly Row[]): number {
  let size = rows.length * HEAD;
  // UTF-8 needs at most three bytes per UTF-16 unit.
  for (const row of rows) size += row.key.length * 3 + (row.value?.byteLength ?? 0);
  return size;
}

/** Packs rows into `into`, which must hold `packedSize(rows)` bytes; the values are copied. */
export function packRows(rows: readonly Row[], into: ArrayBuffer = new ArrayBuffer(packedSize(rows))): ArrayBuffer {
  const bytes = new Uint8Array(into);
  const head = new DataView(bytes.buffer);
  let at = rows.length * HEAD;
  for (let i = 0; i < rows.length; i++) {
    const row = rows[i]!;
    const keyLength = encoder.encodeInto(row.key, bytes.subarray(at)).written;
    at += keyLength;
    if (row.value !== undefined) {
      bytes.set(row.value, at);
      at += row.value.byteLength;
    }
    head.setFloat64(i * HEAD, row.revision);
    head.setFloat64(i * HEAD + 8, row.previous ?? 0);
    head.setUint32(i * HEAD + 16, row.created ? (keyLength | CREATED) >>> 0 : keyLength);
    head.setUint32(i * HEAD + 20, row.value?.byteLength ?? TOMBSTONE);
  }
  return into;
}

/** Unpacks `count` rows; values are views of `buffer`. */
export function unpackRows(buffer: ArrayBuffer, count: number): Row[] {
  const head = new DataView(buffer);
  const rows: Row[] = new Array(count);
  let at = count * HEAD;
  for (let i = 0; i < count; i++) {
    const keyField = head.getUint32(i * HEAD + 16);
    const valueLength = head.getUint32(i * HEAD + 20);
    const previous = head.getFloat64(i * HEAD + 8);
    const keyLength = keyField & ~CREATED;
    const key = decoder.decode(new Uint8Array(buffer, at, keyLength));
    at += keyLength;
    let value: Uint8Array | undefined;
    if (valueLength !== TOMBSTONE) {
      value = new Uint8Array(buffer, at, valueLength);
      at += valueLength;
    }
    const revision = head.getFloat64(i * HEAD);
    const created = keyField >= CREATED;
    rows[i] = previous === 0 ? { revision, key, value, created } : { revision, key, value, created, previous };
  }
  return rows;
}
