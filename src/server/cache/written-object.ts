/**
 * Large objects on their way into the cache and out of it, in steps: written and frozen before the store decides, which
 * it does in one go, and parsed before somebody looks at them.
 */
import { joinBytes } from '../../api/meta/join-bytes.ts';
import { encodeJsonSteps } from '../../api/meta/json-steps.ts';
import type { UnstructuredObject } from '../../api/meta/object.ts';
import { Pace, type Steps } from '../../api/meta/steps.ts';

const encoder = new TextEncoder();
const utf8 = (text: string): Uint8Array => encoder.encode(text);

/** An object's JSON but for its revision, which only the store's decision gives. Its parts below the first are frozen. */
export interface WrittenObject {
  readonly object: UnstructuredObject;
  /** Up to the value of `metadata.resourceVersion`. */
  readonly before: Uint8Array;
  readonly after: Uint8Array;
}

/**
 * Writes an object, and freezes what it holds: nobody may change that afterwards. The object itself and its metadata stay
 * as they are.
 */
export function* writtenSteps(object: UnstructuredObject): Steps<WrittenObject> {
  const { kind, apiVersion, metadata, ...rest } = object;
  const [first, last] = aroundVersion(metadata as Readonly<Record<string, unknown>>);
  const head = yield* encodeJsonSteps({ kind, apiVersion, metadata: first });
  const fields = yield* encodeJsonSteps(last);
  const tail = yield* encodeJsonSteps(rest);
  const pace = new Pace();
  for (const member of Object.values(metadata)) yield* freezeSteps(member, pace);
  for (const member of Object.values(rest)) yield* freezeSteps(member, pace);
  const isFirst = Object.values(first).every((value) => value === undefined);
  // Each is an object of its own: braces go, commas come.
  const before = joinBytes([head.subarray(0, head.length - 2), utf8(`${isFirst ? '' : ','}"resourceVersion":"`)]);
  const after = joinBytes([utf8('"'), members(fields), utf8('}'), members(tail), utf8('}')]);
  return { object, before, after };
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

/** As `deepFreeze`, in steps. Nobody may look whether a part is frozen before all of it is. */
export function* freezeSteps(root: unknown, pace: Pace): Steps<void> {
  if (typeof root !== 'object' || root === null) return;
  const open: object[] = [root];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    if (pace.due()) yield;
    if (Object.isFrozen(node)) continue;
    Object.freeze(node);
    if (Array.isArray(node)) {
      for (const value of node) {
        if (typeof value === 'object' && value !== null) open.push(value);
      }
      continue;
    }
    const names = Object.keys(node);
    if (pace.due(names.length)) yield;
    for (const name of names) {
      const value: unknown = (node as Record<string, unknown>)[name];
      if (typeof value === 'object' && value !== null) open.push(value);
    }
  }
}
