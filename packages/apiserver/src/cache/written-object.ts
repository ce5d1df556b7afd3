/**
 * Large objects on their way into the cache: written and frozen in pieces before the store decides, which it does in one go.
 */
import { joinBytes } from '@coracle/apimachinery/meta/join-bytes';
import { encodeJsonInPieces } from '@coracle/apimachinery/meta/json-pieces';
import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import type { Pause } from '@coracle/apimachinery/meta/pause';

const encoder = new TextEncoder();
const utf8 = (text: string): Uint8Array => encoder.encode(text);

/** An object's JSON but for its revision, which only the store's decision gives. Its parts below the first are frozen. */
export interface WrittenObject {
  readonly object: UnstructuredObject;
  /** Up to the value of `metadata.resourceVersion`. */
  readonly before: Uint8Array;
  readonly after: Uint8Array;
}

/** The JSON of an object around the value of its `metadata.resourceVersion`. */
export function writeAroundVersion(object: UnstructuredObject): Pick<WrittenObject, 'before' | 'after'> {
  const { kind, apiVersion, metadata, ...rest } = object;
  const [first, last] = aroundVersion(metadata as Readonly<Record<string, unknown>>);
  const json = (value: unknown): Uint8Array => utf8(JSON.stringify(value));
  return joined({ first, head: json({ kind, apiVersion, metadata: first }), fields: json(last), tail: json(rest) });
}

/** The object's JSON again, out of what is around the value of its `metadata.resourceVersion`; undefined = it has none. */
export function withVersion(
  { before, after }: Pick<WrittenObject, 'before' | 'after'>,
  version: string | undefined,
): Uint8Array {
  if (version !== undefined) return joinBytes([before, utf8(version), after]);
  // It stands at the end of the metadata, behind a comma, which goes with it and with both quotes.
  return joinBytes([before.subarray(0, before.length - MEMBER.length), after.subarray(1)]);
}
const MEMBER = ',"resourceVersion":"';

/**
 * Writes an object in pieces, and freezes what it holds: nobody may change that afterwards. The object itself and its
 * metadata stay as they are.
 */
export async function writeInPieces(object: UnstructuredObject, pause: Pause): Promise<WrittenObject> {
  const { kind, apiVersion, metadata, ...rest } = object;
  const [first, last] = aroundVersion(metadata as Readonly<Record<string, unknown>>);
  const head = await encodeJsonInPieces({ kind, apiVersion, metadata: first }, pause);
  const fields = await encodeJsonInPieces(last, pause);
  const tail = await encodeJsonInPieces(rest, pause);
  for (const member of [...Object.values(metadata), ...Object.values(rest)]) await freezeInPieces(member, pause);
  return { object, ...joined({ first, head, fields, tail }) };
}

function joined({
  first,
  head,
  fields,
  tail,
}: {
  readonly first: object;
  readonly head: Uint8Array;
  readonly fields: Uint8Array;
  readonly tail: Uint8Array;
}): Pick<WrittenObject, 'before' | 'after'> {
  const isFirst = Object.values(first).every((value) => value === undefined);
  // Each is an object of its own: braces go, commas come.
  const before = joinBytes([head.subarray(0, head.length - 2), utf8(`${isFirst ? '' : ','}"resourceVersion":"`)]);
  const after = joinBytes([utf8('"'), members(fields), utf8('}'), members(tail), utf8('}')]);
  return { before, after };
}

/** What stands before `resourceVersion` and behind it, when that is set where it stands or else put at the end. */
function aroundVersion(
  metadata: Readonly<Record<string, unknown>>,
): readonly [Record<string, unknown>, Record<string, unknown>] {
  const entries = Object.entries(metadata);
  const found = entries.findIndex(([name]) => name === 'resourceVersion');
  const at = found < 0 ? entries.length : found;
  return [Object.fromEntries(entries.slice(0, at)), Object.fromEntries(entries.slice(at + 1))];
}

/** `{"a":1}` as `,"a":1`. */
function members(object: Uint8Array): Uint8Array {
  if (object.length === 2) return new Uint8Array(0);
  const out = object.slice(0, object.length - 1);
  out[0] = COMMA;
  return out;
}
const COMMA = 0x2c;

/** Nodes frozen between two pauses. */
const SLICE = 4000;

/** As `deepFreeze`, in pieces. Nobody may look whether a part is frozen before all of it is. */
export async function freezeInPieces(root: unknown, pause: Pause): Promise<void> {
  if (typeof root !== 'object' || root === null) return;
  const open: object[] = [root];
  let left = SLICE;
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    if (Object.isFrozen(node)) continue;
    Object.freeze(node);
    const values: readonly unknown[] = Array.isArray(node) ? node : Object.values(node);
    for (const value of values) if (typeof value === 'object' && value !== null) open.push(value);
    left -= 1 + (values.length >> 2);
    if (left > 0) continue;
    left = SLICE;
    await pause();
  }
}
