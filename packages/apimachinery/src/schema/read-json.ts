/**
 * Request bodies to values. JSON.parse does the work; one byte scan before it bounds the depth and counts the members,
 * so that duplicate keys (which JSON.parse drops silently) are noticed at almost no cost: only when the counts differ
 * does the strict scanner look for their paths.
 */

import type { Pause } from '../meta/pause.ts';
import { badRequest } from '../meta/status.ts';
import { JsonReader, locateInJson, type OddNumbers } from './scan-json.ts';
import { parseWide } from './wide-integers.ts';

export interface ParsedJson {
  readonly value: unknown;
  /**
   * Members that were given more than once, in document order, at most 100: their paths (`spec.containers[0].x`), or for
   * YAML what its reader says of them (`line 3: key "x" already set in map`).
   */
  duplicates(): string[];
  /** What was asked for by `validatedByType`; absent when there are none. */
  readonly numbers?: OddNumbers;
  readonly yaml?: boolean;
}

export interface NumberOptions {
  /** Whole numbers beyond ±2^53 become bigints, and beyond an int64 the nearest double, instead of being refused. */
  readonly wideIntegers?: boolean | undefined;
  /** Nothing is refused: numbers that a double does not hold, or that are spelled oddly, are reported by `numbers`. */
  readonly validatedByType?: boolean | undefined;
}

/** Deepest nesting accepted. Every walk over a parsed value may recurse, so it must stay far below the stack's end. */
export const MAX_DEPTH = 1000;

const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/**
 * Parses a JSON document.
 * @throws ApiError 400 when it is malformed, nested too deeply, or holds a number that would lose digits
 */
export function parseJson(bytes: Uint8Array, { wideIntegers, validatedByType }: NumberOptions = {}): ParsedJson {
  const { members, hasOddNumbers } = scanBytes(bytes);
  const text = decoder.decode(bytes);
  const value = parseText(text);
  const census = censusOf(value);
  const oddNumbers = validatedByType === true && (census.odd || hasOddNumbers);
  const numbers = oddNumbers ? locateInJson(text, { oddNumbers }).numbers : undefined;
  if (census.odd && !oddNumbers) {
    const { inexact } = locateInJson(text, { wideIntegers });
    if (inexact !== undefined) throw inexactNumber(inexact.text, inexact.path);
  }
  const clean = census.members === members;
  const exact = census.odd && wideIntegers === true ? parseWide(text) : value;
  return {
    value: exact,
    duplicates: () => (clean ? [] : locateInJson(text).duplicates),
    ...(numbers?.size && { numbers }),
  };
}

/** Characters read between two pauses: at most some milliseconds. */
const PIECE = 64 * 1024;

/** The same for large documents, with others let in by `pause` between its steps. */
export async function parseJsonInPieces(
  bytes: Uint8Array,
  pause: Pause,
  options: NumberOptions = {},
): Promise<ParsedJson> {
  scanBytes(bytes);
  const { wideIntegers, validatedByType: oddNumbers } = options;
  const reader = new JsonReader(decoder.decode(bytes), { build: true, wideIntegers, oddNumbers });
  await pause();
  while (!reader.read(PIECE)) await pause();
  const { error, inexact, duplicates, numbers } = reader.findings();
  if (error !== undefined) throw badRequest(`json parse error: ${error}`);
  // A later member of the same name may have put another value in its place.
  if (inexact !== undefined && (duplicates.length === 0 || censusOf(reader.value).odd)) {
    throw inexactNumber(inexact.text, inexact.path);
  }
  return { value: reader.value, duplicates: () => [...duplicates], ...(numbers.size > 0 && { numbers }) };
}

function parseText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw badRequest(`json parse error: ${locateInJson(text).error ?? (cause as Error).message}`);
  }
}

/** The refusal of a number that a double cannot hold exactly. */
export const inexactNumber = (text: string, path: string): Error =>
  badRequest(
    `json: cannot keep number ${text}${path === '' ? '' : ` at ${path}`} exactly: integers must lie within ±9007199254740991, other numbers within ±1.8e308`,
  );

interface Scan {
  readonly members: number;
  /** A number may have a fraction or an exponent, or be -0. */
  readonly hasOddNumbers: boolean;
}

/** Counts the members of all objects and bounds the depth. @throws ApiError 400 beyond MAX_DEPTH */
function scanBytes(bytes: Uint8Array): Scan {
  let hasOddNumbers = false;
  let members = 0;
  let depth = 0;
  const length = bytes.length;
  for (let i = 0; i < length; i++) {
    const c = bytes[i]!;
    if (c === 0x22) {
      for (i++; i < length; i++) {
        const s = bytes[i]!;
        if (s === 0x22) break;
        if (s === 0x5c) i++;
      }
    } else if (c === 0x3a) {
      members++;
    } else if (c === 0x7b || c === 0x5b) {
      if (++depth > MAX_DEPTH) throw badRequest(`json: exceeded the maximum depth of ${MAX_DEPTH}`);
    } else if (c === 0x7d || c === 0x5d) {
      depth--;
    } else if (c === 0x2e || c === 0x45 || c === 0x2d || (c === 0x65 && bytes[i - 1]! <= 0x39)) {
      // The letter of `true` and `false` follows another one.
      hasOddNumbers ||= c !== 0x2d || bytes[i + 1] === 0x30;
    }
  }
  return { members, hasOddNumbers };
}

interface Census {
  members: number;
  /** A number lies where doubles have gaps wider than one, or overflowed. */
  odd: boolean;
}

function censusOf(value: unknown): Census {
  const census = { members: 0, odd: false };
  takeCensus(value, census);
  return census;
}

function takeCensus(value: unknown, census: Census): void {
  if (typeof value === 'number') {
    if (value > Number.MAX_SAFE_INTEGER || value < -Number.MAX_SAFE_INTEGER) census.odd = true;
  } else if (typeof value === 'object' && value !== null) {
    if (Array.isArray(value)) {
      for (const item of value) if (typeof item !== 'string') takeCensus(item, census);
      return;
    }
    const keys = Object.keys(value);
    census.members += keys.length;
    for (const key of keys) {
      const member = (value as Record<string, unknown>)[key];
      if (typeof member !== 'string') takeCensus(member, census);
    }
  }
}
