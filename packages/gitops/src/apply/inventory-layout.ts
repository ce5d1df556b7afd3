/** How the entries of an inventory lie in several objects, none of which grows past what an object may hold. */
import type { ObjectRef } from '../kinds/kinds.ts';
import { refId } from '../plan/object-ref.ts';
import { compareRefs } from '../plan/order.ts';

/** An entry is there twice, in the spec and in the status: bytes that its status takes beside its name. */
const STATUS_BYTES = 160;

/** Bytes that an entry takes in spec and status together. */
export const entryBytes = ({ group, kind, namespace, name }: ObjectRef): number =>
  2 * Buffer.byteLength(JSON.stringify({ group, kind, namespace, name })) + STATUS_BYTES;

/**
 * Places what is wanted: an entry stays where it is, a new one comes into the first part with room. Entries move in one
 * case alone, from the last part into those before it, when all of them find room there: the number of parts shrinks.
 * A part that holds more than `maxBytes` as it is keeps what it has and takes nothing more.
 * @param parts as they are now, an entry perhaps in several; the first wins
 * @returns at least one part; those at the end that hold nothing are left out
 */
export function layOut(
  parts: readonly (readonly ObjectRef[])[],
  wanted: readonly ObjectRef[],
  maxBytes: number,
): ObjectRef[][] {
  const missing = new Map(wanted.map((ref) => [refId(ref), ref]));
  const placed: { readonly refs: Map<string, ObjectRef>; bytes: number }[] = [];
  const part = (at: number) => {
    placed[at] ??= { refs: new Map(), bytes: 0 };
    return placed[at];
  };
  const put = (at: number, ref: ObjectRef): void => {
    const into = part(at);
    into.refs.set(refId(ref), ref);
    into.bytes += entryBytes(ref);
  };
  part(0);
  for (const [at, refs] of parts.entries()) {
    part(at);
    for (const ref of refs) if (missing.delete(refId(ref))) put(at, ref);
  }
  /** The first part below `end` with room; parts before `from` are known to have none for what comes next. */
  const roomFor = (bytes: number, end: number): number => {
    let at = 0;
    // A part that is empty takes any entry: none is larger than a part.
    while (at < end && part(at).refs.size > 0 && part(at).bytes + bytes > maxBytes) at++;
    return at;
  };
  for (const ref of [...missing.values()].sort(compareRefs)) put(roomFor(entryBytes(ref), Infinity), ref);
  for (;;) {
    const last = placed.length - 1;
    if (last === 0) break;
    const rooms = placed.slice(0, last).map(({ bytes }) => maxBytes - bytes);
    const moves: [at: number, ref: ObjectRef][] = [];
    for (const ref of placed[last]!.refs.values()) {
      const at = rooms.findIndex((room) => room >= entryBytes(ref));
      if (at === -1) break;
      rooms[at]! -= entryBytes(ref);
      moves.push([at, ref]);
    }
    if (moves.length < placed[last]!.refs.size) break;
    placed.pop();
    for (const [at, ref] of moves) put(at, ref);
  }
  return placed.map(({ refs }) => [...refs.values()].sort(compareRefs));
}
