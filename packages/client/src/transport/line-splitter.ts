/** Cuts a byte stream at newlines: the framing of JSON watches. */
import { joinBytes } from '@coracle/apimachinery/meta/join-bytes';

/** Longest frame, newline excluded. A server stores objects of at most 3 MiB; a watch event wraps one. */
const MAX_FRAME_BYTES = 8 * 1024 * 1024;

const NEWLINE = 0x0a;

/** Makes a splitter that holds at most one unfinished frame of `maxFrameBytes`. */
export function createLineSplitter(maxFrameBytes: number = MAX_FRAME_BYTES) {
  const decoder = new TextDecoder();
  let parts: Uint8Array[] = [];
  let held = 0;

  const take = (last: Uint8Array): string => {
    if (held === 0) return decoder.decode(last);
    const line = joinBytes([...parts, last]);
    parts = [];
    held = 0;
    return decoder.decode(line);
  };
  const check = (more: number): void => {
    if (held + more <= maxFrameBytes) return;
    parts = [];
    held = 0;
    throw new RangeError(`Cannot read watch frame: longer than ${maxFrameBytes} bytes`);
  };

  return {
    /** Takes a chunk and returns the lines it completed, empty ones left out. Throws RangeError when a frame is too long. */
    push(chunk: Uint8Array): string[] {
      const lines: string[] = [];
      let start = 0;
      for (;;) {
        const end = chunk.indexOf(NEWLINE, start);
        if (end < 0) break;
        check(end - start);
        const line = take(chunk.subarray(start, end)).trim();
        if (line !== '') lines.push(line);
        start = end + 1;
      }
      if (start < chunk.length) {
        check(chunk.length - start);
        parts.push(start === 0 ? chunk : chunk.subarray(start));
        held += chunk.length - start;
      }
      return lines;
    },
  };
}
