/** Frames as QEMU's filters send them over a socket: a length of four bytes, high byte first, and the frame. */

/** The largest that QEMU makes (NET_BUFSIZE). */
const MAX_FRAME = 4096 + 65_536;
const HEADER = 4;

export interface FrameStream {
  /**
   * Cuts what was received into frames and returns those that may go on, with their lengths, in as few pieces as they
   * lie together. Throws when it cannot be a frame: nothing behind it can be read then.
   */
  take(bytes: Uint8Array): Uint8Array[];
}

/** Makes one for one direction. `mayPass` is asked once for each frame. At most one frame waits for its rest. */
export function createFrameStream(mayPass: (frame: Uint8Array) => boolean): FrameStream {
  let rest: Uint8Array = new Uint8Array(0);
  return {
    take(bytes) {
      const all = rest.length === 0 ? bytes : Buffer.concat([rest, bytes]);
      const passed: Uint8Array[] = [];
      let at = 0;
      /** Where the piece begins that passes as a whole. */
      let from = 0;
      while (all.length - at >= HEADER) {
        const length =
          (((all[at] ?? 0) << 24) | ((all[at + 1] ?? 0) << 16) | ((all[at + 2] ?? 0) << 8) | (all[at + 3] ?? 0)) >>> 0;
        if (length > MAX_FRAME) throw new Error(`a frame of ${length} bytes`);
        const end = at + HEADER + length;
        if (end > all.length) break;
        if (!mayPass(all.subarray(at + HEADER, end))) {
          if (from < at) passed.push(all.subarray(from, at));
          from = end;
        }
        at = end;
      }
      if (from < at) passed.push(all.subarray(from, at));
      // A copy: what is behind it must not be held by a few bytes.
      rest = Uint8Array.prototype.slice.call(all, at);
      return passed;
    },
  };
}
