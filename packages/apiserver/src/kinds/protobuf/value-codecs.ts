/** How one value stands on the wire and in JSON: strings, numbers, bytes. */

import { decodeBase64, encodeBase64 } from '@coracle/apimachinery/meta/base64';
import type protobuf from 'protobufjs/minimal.js';
import { BYTES, FIXED64, VARINT, type WireInput } from './wire-input.ts';

export interface Codec {
  /** The wire type of one value. */
  readonly wire: typeof VARINT | typeof FIXED64 | typeof BYTES;
  /**
   * Reads one value. For the wire type BYTES the length has been read and `end` is the value's end. `earlier` is the
   * value of the same field seen before: messages merge. undefined = JSON leaves the field out.
   */
  read(input: WireInput, end: number, earlier: unknown): unknown;
  /** Writes one value with its length, without a tag. */
  write(writer: protobuf.Writer, value: unknown): void;
  /** The zero value, which JSON leaves out of optional fields; undefined for messages, whose presence says something. */
  readonly zero?: unknown;
  /** The value of a map entry that carries none. */
  empty(): unknown;
}

/** Fields by number, in ascending order: Go writes them so. */
export type MessagePlan = ReadonlyMap<number, WireField>;

/** One field of a message. */
export type WireField =
  | { readonly kind: 'one'; readonly property: string; readonly codec: Codec; readonly keepZero: boolean }
  | { readonly kind: 'list'; readonly property: string; readonly codec: Codec }
  | { readonly kind: 'map'; readonly property: string; readonly codec: Codec }
  /** A Go struct that JSON inlines: its fields are properties of the object around it. */
  | { readonly kind: 'inline'; readonly plan: MessagePlan };

const encoder = new TextEncoder();

export const STRING: Codec = {
  wire: BYTES,
  read: (input, end) => input.string(end),
  // TextEncoder, unlike the library, never writes half a surrogate pair.
  write: (writer, value) => void writer.bytes(encoder.encode(typeof value === 'string' ? value : '')),
  zero: '',
  empty: () => '',
};

/** Bytes that are no value of JSON yet. */
export const BYTE_STRING: Codec = {
  wire: BYTES,
  read: (input, end) => input.bytes(end),
  write: (writer, value) => void writer.bytes(value as Uint8Array),
  empty: () => new Uint8Array(0),
};

export const BASE64: Codec = {
  wire: BYTES,
  read: (input, end) => encodeBase64(input.bytes(end)),
  write: (writer, value) => void writer.bytes(bytesOf(value)),
  zero: '',
  empty: () => '',
};

function bytesOf(value: unknown): Uint8Array {
  try {
    return decodeBase64(typeof value === 'string' ? value : '');
  } catch {
    // Stored objects passed validation, so this is a value of a kind that never checked it.
    return new Uint8Array(0);
  }
}

function numberOf(value: unknown): number {
  if (typeof value === 'bigint') return Number(value);
  return typeof value === 'number' && Number.isFinite(value) ? value : 0;
}

export const INT32: Codec = {
  wire: VARINT,
  read: (input) => input.int32(),
  write: (writer, value) => void writer.int32(numberOf(value)),
  zero: 0,
  empty: () => 0,
};

export const INT64: Codec = {
  wire: VARINT,
  read(input) {
    const value = input.int64();
    if (typeof value === 'number') return value;
    throw new Error(`integer ${value} is beyond ±9007199254740991`);
  },
  write(writer, value) {
    if (typeof value !== 'bigint') return void writer.int64(numberOf(value));
    const bits = BigInt.asUintN(64, value);
    // What the library takes for a 64-bit number where there is no class for them.
    writer.int64({ low: Number(bits & 0xffffffffn), high: Number(bits >> 32n), unsigned: false } as never);
  },
  zero: 0,
  empty: () => 0,
};

/** An int64 of a field of which `rangeOf` (apimachinery/schema) says what becomes of it. */
export const wideInt64 = (isKept: (value: bigint) => boolean): Codec => ({
  ...INT64,
  read(input) {
    const value = input.int64();
    return typeof value === 'number' || isKept(value) ? value : Number(value);
  },
});

export const BOOL: Codec = {
  wire: VARINT,
  read: (input) => input.bool(),
  write: (writer, value) => void writer.bool(value === true),
  zero: false,
  empty: () => false,
};

export const DOUBLE: Codec = {
  wire: FIXED64,
  read(input) {
    const value = input.double();
    if (!Number.isFinite(value)) throw new Error(`${value} has no JSON form`);
    return value;
  },
  write: (writer, value) => void writer.double(numberOf(value)),
  zero: 0,
  empty: () => 0,
};

export const tag = (number: number, wire: number): number => ((number << 3) | wire) >>> 0;
