/**
 * Lists as plain JSON, sent from where it lies: what two readers asked for is joined once, by runs of neighbouring objects,
 * and kept for the next. Picking five hundred objects together for each reader anew is a third of the work of a page.
 */
import type { Clock } from '@coracle/runtime/clock/clock';
import { type ItemBytes, itemBytes, itemPieces, joinItems } from '../registry/versioned-view.ts';
import { KeptRuns, type Run, runsOf } from './kept-runs.ts';
import { haveBytes } from './list-size.ts';
import type { PackableList } from './packed-lists.ts';

/** Bytes that kept runs may hold together, what it takes to remember them included. */
export const MAX_JOINED_BYTES = 16 * 1024 * 1024;
/** A run that nobody asked for in this time goes. */
export const MAX_UNUSED_MS = 60_000;
/** Larger lists are picked together for each reader: joined they would push out all that others ask for. */
const MAX_LIST_BYTES = MAX_JOINED_BYTES / 4;
/** Runs below this are copied into a block with their neighbours when they are sent. */
const MIN_RUN_BYTES = 32 * 1024;

const encoder = new TextEncoder();
const COMMA = Uint8Array.of(0x2c);

export type JoinedLists = ReturnType<typeof createJoinedLists>;

/** `maxBytes`: `MAX_JOINED_BYTES` when not given. */
export function createJoinedLists(clock: Clock, maxBytes: number = MAX_JOINED_BYTES) {
  /** Undefined: asked for once. */
  const runs = new KeptRuns<Uint8Array | undefined>({ clock, maxBytes, maxUnusedMs: MAX_UNUSED_MS });
  const joined = (run: Run): Uint8Array | undefined => {
    const known = runs.find(run);
    if (known === undefined) {
      runs.add(run, undefined, 0);
      return undefined;
    }
    if (known.kept !== undefined) return known.kept;
    const bytes = joinItems(itemsOf(run), { head: '', tail: '' });
    runs.replace(known, bytes, bytes.length);
    return bytes;
  };
  return {
    /** The JSON of the items between `head` and `tail`, in parts that do not change. */
    parts({ info, items, head, tail }: Omit<PackableList, 'signal'>): readonly Uint8Array[] {
      const parts: Uint8Array[] = [encoder.encode(head)];
      // What a webhook makes of an object is asked for anew for each list.
      const mayKeep = info.remote === undefined && !haveBytes(items, MAX_LIST_BYTES);
      for (const run of mayKeep ? runsOf(info, items) : [{ info, items, from: 0, to: items.length, bytes: 0 }]) {
        if (run.from > 0) parts.push(COMMA);
        // A single object lies in one place already.
        const whole = run.bytes >= MIN_RUN_BYTES && run.to - run.from > 1 ? joined(run) : undefined;
        if (whole !== undefined) parts.push(whole);
        else for (const piece of itemPieces(itemsOf(run))) parts.push(piece);
      }
      parts.push(encoder.encode(tail));
      return parts;
    },
    /** What the kept runs hold. */
    get keptBytes(): number {
      return runs.bytes;
    },
  };
}

const itemsOf = ({ info, items, from, to }: Run): ItemBytes[] =>
  items.slice(from, to).map((item) => itemBytes(info, item));
