/**
 * A list of objects whose bytes lie on the disk: each is read when the client has taken those before it, so that a list of
 * all of a tenant's large objects takes the memory of a few.
 */
import type { ResourceInfo } from '@coracle/apimachinery/types/resource';
import { nextTurn } from '@coracle/runtime/clock/next-turn';
import type { ByteSink, ByteStream } from '@coracle/runtime/http/seam';
import type { StoredObject } from '../cache/object-store.ts';
import { itemBytes, itemPieces } from '../registry/versioned-view.ts';
import { haveBytes } from './list-size.ts';

/** Bytes on the disk from which a list is streamed: less may be held in memory for one answer. */
const STREAM_FROM = 4 * 1024 * 1024;
/** Bytes read before others have their turn. */
const STEP = 512 * 1024;

const encoder = new TextEncoder();
const COMMA = Uint8Array.of(0x2c);

/** True when so much of a list lies on the disk that it is streamed. */
export const isLeftOnDisk = (items: readonly StoredObject[]): boolean =>
  haveBytes(items, STREAM_FROM, ({ isHeld, size }) => (isHeld ? 0 : size));

interface StreamableList {
  /** Shown as it is stored: neither a view nor a conversion. */
  readonly info: ResourceInfo;
  readonly items: readonly StoredObject[];
  /** What stands before and behind the items. */
  readonly head: string;
  readonly tail: string;
}

/** The body of the list as JSON. It breaks off when an object cannot be read: the client must not take it for whole. */
export const streamedList =
  (list: StreamableList): ByteStream =>
  (sink) => {
    void writeList(list, sink).catch(() => (sink.fail ?? sink.end).call(sink));
  };

async function writeList({ info, items, head, tail }: StreamableList, sink: ByteSink): Promise<void> {
  let isTaken = sink.write(encoder.encode(head));
  let step = 0;
  for (const [i, item] of items.entries()) {
    if (sink.signal.aborted) return;
    if (!isTaken) await sink.drained();
    if (step >= STEP) {
      step = 0;
      await nextTurn();
    }
    step += item.size;
    if (i > 0) sink.write(COMMA);
    for (const piece of itemPieces([itemBytes(info, item)])) isTaken = sink.write(piece);
  }
  sink.write(encoder.encode(tail));
  sink.end();
}
