/** Reading the wire format with every length checked. Failures are plain errors; `request-body.ts` turns them into 400. */
import protobuf from 'protobufjs/minimal.js';

/** Deepest nesting of messages: far below the stack's end, far above what the API nests. */
const MAX_MESSAGE_DEPTH = 400;

export const VARINT = 0;
export const FIXED64 = 1;
export const BYTES = 2;
const FIXED32 = 5;

// Bytes that are no UTF-8 become U+FFFD: Go keeps them, JSON cannot.
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/** A position in one body, shared by all messages inside it. */
export class WireInput {
  readonly #reader: protobuf.Reader;
  #depth: number;

  constructor(bytes: Uint8Array, depth = 0) {
    this.#reader = protobuf.Reader.create(bytes);
    this.#depth = depth;
  }

  /** A message that is carried as bytes in this one: it counts as deeper. */
  inner(bytes: Uint8Array): WireInput {
    return new WireInput(bytes, this.#depth);
  }

  get position(): number {
    return this.#reader.pos;
  }

  /** Runs `read` one level deeper. Throws beyond MAX_MESSAGE_DEPTH. */
  nested<T>(read: () => T): T {
    if (++this.#depth > MAX_MESSAGE_DEPTH) throw new Error(`messages nest deeper than ${MAX_MESSAGE_DEPTH}`);
    const result = read();
    this.#depth--;
    return result;
  }

  /** Calls `field` for each field up to `end`; it must consume the field's value. */
  fields(end: number, field: (number: number, wire: number) => void): void {
    const reader = this.#reader;
    while (reader.pos < end) {
      const tag = reader.uint32();
      const number = tag >>> 3;
      if (number === 0) throw new Error('illegal tag 0');
      field(number, tag & 7);
    }
    if (reader.pos !== end) throw new Error(`a field crosses the end of its message at byte ${end}`);
  }

  /** The end of the length-delimited value that begins here; it must lie within `limit`. */
  valueEnd(limit: number): number {
    const length = this.#reader.uint32();
    const end = this.#reader.pos + length;
    if (end > limit) throw new Error(`unexpected end: ${length} bytes announced, ${limit - this.#reader.pos} left`);
    return end;
  }

  skip(wire: number, limit: number): void {
    const reader = this.#reader;
    if (wire === VARINT) reader.bool();
    else if (wire === FIXED64) reader.skip(8);
    else if (wire === FIXED32) reader.skip(4);
    else if (wire === BYTES) reader.pos = this.valueEnd(limit);
    else throw new Error(`wire type ${wire} is not supported`);
  }

  expectWire(found: number, wanted: number): void {
    if (found !== wanted) throw new Error(`wrong wire type ${found}, expected ${wanted}`);
  }

  bool(): boolean {
    return this.#reader.bool();
  }

  double(): number {
    return this.#reader.double();
  }

  /** Negative numbers take ten bytes on the wire, those of 32 bits too. */
  int32(): number {
    const value: unknown = this.#reader.int64();
    return (typeof value === 'number' ? value : (value as { toInt(): number }).toInt()) | 0;
  }

  /** A bigint where a JSON number would lose digits. */
  int64(): number | bigint {
    const { buf, pos } = this.#reader;
    const value: unknown = this.#reader.int64();
    const number = typeof value === 'number' ? value : (value as { toNumber(): number }).toNumber();
    return Number.isSafeInteger(number) ? number : varint64(buf, pos);
  }

  /** The bytes up to `end`, not copied. */
  bytes(end: number): Uint8Array {
    const { buf, pos } = this.#reader;
    this.#reader.pos = end;
    return buf.subarray(pos, end);
  }

  string(end: number): string {
    return decoder.decode(this.bytes(end));
  }
}

/** The signed 64-bit integer whose varint begins at `pos`, and is known to end within the buffer. */
function varint64(buf: Uint8Array, pos: number): bigint {
  let bits = 0n;
  for (let i = 0; i < 10; i++) {
    const byte = buf[pos + i]!;
    bits |= BigInt(byte & 0x7f) << BigInt(7 * i);
    if (byte < 0x80) break;
  }
  return BigInt.asIntN(64, bits);
}
