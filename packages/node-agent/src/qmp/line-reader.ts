/** Splits a byte stream into lines with a bound: a peer that never sends a newline costs `max` bytes, no more. */

/**
 * Makes what takes the bytes; it calls `onLine` for each complete line, and throws when one is longer than the bound.
 * Lines are separated by \n; a trailing \r is dropped; empty lines are skipped. Bad UTF-8 becomes U+FFFD.
 */
export function createLineReader(max: number, onLine: (line: string) => void): (chunk: Uint8Array) => void {
  let parts: Uint8Array[] = [];
  let size = 0;
  const add = (bytes: Uint8Array): void => {
    size += bytes.length;
    if (size > max) throw new Error(`a line is longer than ${max} bytes`);
    if (bytes.length > 0) parts.push(bytes);
  };
  return (chunk) => {
    let from = 0;
    for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, from)) {
      // A byte each: nothing is put together for them.
      if (at === from && size === 0) {
        from++;
        continue;
      }
      add(chunk.subarray(from, at));
      const line = Buffer.concat(parts).toString('utf8').replace(/\r$/, '');
      parts = [];
      size = 0;
      from = at + 1;
      if (line !== '') onLine(line);
    }
    // A copy: the chunk belongs to the caller.
    add(chunk.slice(from));
  };
}
