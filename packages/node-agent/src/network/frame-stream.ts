/** Frames as QEMU's filters send them over a socket: a length of four bytes, high byte first, and the frame. */

/** The largest that QEMU makes (NET_BUFSIZE). */
export const MAX_FRAME = 4096 + 65_536;
const HEADER = 4;

/** Frames that go on to one place, with their lengths: all that lie together. */
export interface FramePiece<To> {
  readonly to: To;
  readonly bytes: Uint8Array;
}

export interface FrameStream<To> {
  /**
   * Cuts what was received into frames and returns those that go on, in as few pieces as they lie together. Throws when it
   * cannot be a frame: nothing behind it can be read then.
   */
  take(bytes: Uint8Array): FramePiece<To>[];
}

/**
 * Makes one for one direction. `sort` is asked once for each frame, which it may change in place, where it goes; undefined:
 * nowhere. At most one frame waits for its rest.
 */
export function createFrameStream<To>(sort: (frame: Uint8Array) => To | undefined): FrameStream<To> {
  let rest: Uint8Array = new Uint8Array(0);
  return {
    take(bytes) {
      const all = rest.length === 0 ? bytes : Buffer.concat([rest, bytes]);
      const pieces: FramePiece<To>[] = [];
      let at = 0;
      /** Where the piece begins that goes to `place` as a whole. */
      let from = 0;
      let place: To | undefined;
      const cut = (): void => {
        if (place !== undefined && from < at) pieces.push({ to: place, bytes: all.subarray(from, at) });
        from = at;
      };
      while (all.length - at >= HEADER) {
        const length =
          (((all[at] ?? 0) << 24) | ((all[at + 1] ?? 0) << 16) | ((all[at + 2] ?? 0) << 8) | (all[at + 3] ?? 0)) >>> 0;
        if (length > MAX_FRAME) throw new Error(`a frame of ${length} bytes`);
        const end = at + HEADER + length;
        if (end > all.length) break;
        const next = sort(all.subarray(at + HEADER, end));
        if (next !== place) {
          cut();
          place = next;
        }
        at = end;
      }
      cut();
      // A copy: what is behind it must not be held by a few bytes.
      rest = Uint8Array.prototype.slice.call(all, at);
      return pieces;
    },
  };
}

/** Gathers what comes until the first frame is whole: then that, and what is behind it. Throws when it is no frame. */
export function createFirstFrame(): {
  take(bytes: Uint8Array): { readonly frame: Uint8Array; readonly rest: Uint8Array } | undefined;
} {
  let held: Uint8Array = new Uint8Array(0);
  return {
    take(bytes) {
      held = Buffer.concat([held, bytes]);
      if (held.length < HEADER) return undefined;
      const length = new DataView(held.buffer, held.byteOffset).getUint32(0);
      if (length > MAX_FRAME) throw new Error(`a frame of ${length} bytes`);
      if (held.length < HEADER + length) return undefined;
      return { frame: held.subarray(HEADER, HEADER + length), rest: held.subarray(HEADER + length) };
    },
  };
}

/** A frame with its length before it. */
export function withLength(frame: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(HEADER + frame.length);
  new DataView(bytes.buffer).setUint32(0, frame.length);
  bytes.set(frame, HEADER);
  return bytes;
}

/** Of an Ethernet frame the first byte has no lowest bit where it is meant for one card: a note of ours has it. */
const NOTE = 1;
const decoder = new TextDecoder();

/** A message between processes of ours, among frames on the same connection. JSON of at most `MAX_FRAME` bytes. */
export function noteFrame(note: unknown): Uint8Array {
  const text = new TextEncoder().encode(JSON.stringify(note));
  if (text.length >= MAX_FRAME) throw new Error(`a note of ${text.length} bytes`);
  const frame = new Uint8Array(1 + text.length);
  frame[0] = NOTE;
  frame.set(text, 1);
  return withLength(frame);
}

/** What a note says; undefined for a frame that is none. */
export const noteOf = (frame: Uint8Array): unknown =>
  frame[0] === NOTE ? JSON.parse(decoder.decode(frame.subarray(1))) : undefined;
