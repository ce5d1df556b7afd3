/** Which writes are worked on in pieces: those of many bytes, and those of many parts, which take as long. */

import { defaultedFields } from '@coracle/apimachinery/schema/defaulted-fields';
import type { ResourceInfo } from '@coracle/apimachinery/types/resource';
import { nextTurn } from '@coracle/runtime/clock/next-turn';
import type { Decision } from '../cache/object-store.ts';
import { writeInPieces } from '../cache/written-object.ts';
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

/** Fields that defaults may add, from which on they make a write large. */
const MANY_DEFAULTS = 20_000;

/**
 * True for a small body that defaults may make a large object. Which of a definition's defaults apply how often only shows
 * when they are there: each is counted for every list and map of the body, which for most definitions still is not much.
 */
export function growsLarge({ strategy, schema }: Pick<ResourceInfo, 'strategy' | 'schema'>, body: Uint8Array): boolean {
  if (!strategy.custom) return false;
  const each = defaultedFields(schema);
  if (each * body.length < MANY_DEFAULTS) return false;
  let containers = 1;
  for (let i = 0; i < body.length; i++) {
    const c = body[i];
    // A line of YAML may begin one.
    if (c === 0x7b || c === 0x5b || c === 0x0a) containers++;
  }
  return each * containers > MANY_DEFAULTS;
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
    if (weight > MANY_PARTS) return true;
  }
  return false;
}

/**
 * A decision about a large object with that written, and frozen below its own members and those of its metadata: what is
 * left for the store to do is one short step.
 */
export async function writtenDecision(decision: Exclude<Decision, { readonly type: 'keep' }>): Promise<Decision> {
  await nextTurn();
  const written = await writeInPieces(decision.object, nextTurn);
  await nextTurn();
  return { ...decision, written };
}
