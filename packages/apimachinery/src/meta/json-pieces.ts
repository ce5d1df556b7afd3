/** Writing JSON in pieces: what JSON.stringify writes, with others served in between. */
import { joinBytes } from './join-bytes.ts';
import type { Pause } from './pause.ts';

/** Members and items between two pauses. */
const SLICE = 2000;
/** Below this, what is left is written in one go: objects nest further, but not large ones. */
const MAX_DEPTH = 12;

const encoder = new TextEncoder();

/** The bytes of the text JSON.stringify makes of a JSON value, which must not be undefined. */
export async function encodeJsonInPieces(value: unknown, pause: Pause): Promise<Uint8Array> {
  const state = { parts: [] as string[], count: 0, pause };
  const keys = keysOfLarge(value);
  if (keys === undefined) return encoder.encode(JSON.stringify(value) ?? 'null');
  await write(value, keys, { depth: 0, state });
  // Chunk by chunk: the join of a million parts, and the bytes of twenty million characters, are long work themselves.
  const chunks: Uint8Array[] = [];
  for (let at = 0; at < state.parts.length; at += SLICE * 10) {
    chunks.push(encoder.encode(state.parts.slice(at, at + SLICE * 10).join('')));
    await pause();
  }
  return joinBytes(chunks);
}

interface Place {
  readonly depth: number;
  readonly state: State;
}

interface State {
  readonly parts: string[];
  count: number;
  readonly pause: Pause;
}

async function write(value: unknown, keys: readonly string[], { depth, state }: Place): Promise<void> {
  const { parts } = state;
  if (depth === MAX_DEPTH) {
    parts.push(JSON.stringify(value));
    return;
  }
  const inside = { depth: depth + 1, state };
  const isList = Array.isArray(value);
  // Naming the members of a large one was a step of its own.
  if (keys.length > SLICE) await state.pause();
  const holder = value as Record<string | number, unknown>;
  let separator = isList ? '[' : '{';
  for (const key of isList ? value.keys() : keys) {
    const member = holder[key];
    if (member === undefined && !isList) continue;
    const head = isList ? separator : `${separator}${JSON.stringify(key)}:`;
    const within = keysOfLarge(member);
    if (within === undefined) parts.push(`${head}${JSON.stringify(member) ?? 'null'}`);
    else {
      parts.push(head);
      await write(member, within, inside);
    }
    separator = ',';
    if (++state.count % SLICE === 0) await state.pause();
  }
  if (separator !== ',') parts.push(separator);
  parts.push(isList ? ']' : '}');
}

/** What is not looked into: it is written in one go. */
const SMALL = 8;

const NO_KEYS: readonly string[] = Object.freeze([]);

/**
 * Undefined for texts, numbers, and lists and objects of a few of them; else the names of the members (none for a list).
 * Naming the members of a large object is most of the work there is with it: it should be done once.
 */
function keysOfLarge(value: unknown): readonly string[] | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  if (Array.isArray(value)) return value.length <= SMALL && !value.some(isContainer) ? undefined : NO_KEYS;
  const object = value as Record<string, unknown>;
  const keys = Object.keys(object);
  if (keys.length > SMALL) return keys;
  for (const key of keys) if (isContainer(object[key])) return keys;
  return undefined;
}

const isContainer = (value: unknown): boolean => typeof value === 'object' && value !== null;
