/** Which writes are worked on in pieces: those of many bytes, and those of many parts, which take as long. */
import { LARGE_WRITE } from './write-call.ts';

/** Whatever these hold, they are soon done with: nobody counts. */
const SMALL_BODY = 8 * 1024;
/** Of two bytes an empty message, which defaults then fill. */
const SMALL_PROTOBUF = 16 * 1024;
/** A stored object has its defaults: as many parts take more bytes. */
const SMALL_OBJECT = 32 * 1024;

/** Parts, by weight, from which on they make a write large: an empty container takes some 10 µs, a text 2. */
const MANY_PARTS = 10_000;
const NESTED = 4;
const MEMBER = 2;
/** A line of YAML costs its reader as much as everything after it. */
const LINE = 4;

/** True for a body that has to be worked on in pieces. `type` is its media type. */
export function isLargeBody(bytes: Uint8Array, type: string): boolean {
  if (bytes.length > LARGE_WRITE) return true;
  if (type.includes('protobuf')) return bytes.length > SMALL_PROTOBUF;
  return bytes.length > SMALL_BODY && hasManyParts(bytes, type.includes('yaml') ? LINE : 0);
}

/** True for a stored object (JSON) whose change has to be worked on in pieces. */
export const isLargeObject = (bytes: Uint8Array): boolean =>
  bytes.length > LARGE_WRITE || (bytes.length > SMALL_OBJECT && hasManyParts(bytes, 0));

function hasManyParts(bytes: Uint8Array, line: number): boolean {
  let weight = 0;
  for (let i = 0; i < bytes.length; i++) {
    const c = bytes[i]!;
    if (c === 0x2c) weight += MEMBER;
    else if (c === 0x7b || c === 0x5b) weight += NESTED;
    else if (c === 0x0a) weight += line;
  }
  return weight > MANY_PARTS;
}
