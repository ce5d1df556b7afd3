/**
 * Frames of SPDY/3.1 (the draft of the Chromium project, sections 2.2 to 2.6) as values, and back: pure, no compression.
 * A header block stays bytes here, since those of one direction are one compressed stream.
 */

/** What a frame's type says, for the types there are. */
export type SpdyFrame =
  | { readonly type: 'data'; readonly stream: number; readonly fin: boolean; readonly bytes: Uint8Array }
  /** With neither a priority nor an associated stream. */
  | { readonly type: 'syn-stream'; readonly stream: number; readonly fin: boolean; readonly block: Uint8Array }
  | { readonly type: 'syn-reply'; readonly stream: number; readonly fin: boolean; readonly block: Uint8Array }
  | { readonly type: 'headers'; readonly stream: number; readonly fin: boolean; readonly block: Uint8Array }
  | { readonly type: 'rst-stream'; readonly stream: number; readonly status: number }
  | { readonly type: 'settings'; readonly values: ReadonlyMap<number, number> }
  | { readonly type: 'ping'; readonly id: number }
  | { readonly type: 'goaway'; readonly lastStream: number; readonly status: number }
  /** Stream 0 is the session. */
  | { readonly type: 'window-update'; readonly stream: number; readonly delta: number };

/** Longest payload of a frame that is taken. */
export const MAX_FRAME = 1024 * 1024;
/** The setting that changes the window of every stream, and what it is until then. */
export const INITIAL_WINDOW_SETTING = 7;
export const INITIAL_WINDOW = 64 * 1024;
/** Reasons to reset a stream. */
export const REFUSED_STREAM = 3;
export const CANCEL = 5;

const VERSION = 3;
const TYPES = {
  'syn-stream': 1,
  'syn-reply': 2,
  'rst-stream': 3,
  settings: 4,
  ping: 6,
  goaway: 7,
  headers: 8,
  'window-update': 9,
};
const FIN = 0x01;
const MAX_SETTINGS = 64;

/** The bytes of a frame. */
export function encodeFrame(frame: SpdyFrame): Uint8Array {
  switch (frame.type) {
    case 'data': {
      const out = Buffer.alloc(8 + frame.bytes.length);
      out.writeUInt32BE(frame.stream, 0);
      out.writeUInt32BE(frame.bytes.length, 4);
      out[4] = frame.fin ? FIN : 0;
      out.set(frame.bytes, 8);
      return out;
    }
    case 'syn-stream':
      return control(TYPES[frame.type], frame.fin ? FIN : 0, words(frame.stream, 0), Buffer.alloc(2), frame.block);
    case 'syn-reply':
    case 'headers':
      return control(TYPES[frame.type], frame.fin ? FIN : 0, words(frame.stream), frame.block);
    case 'rst-stream':
      return control(TYPES[frame.type], 0, words(frame.stream, frame.status));
    case 'settings':
      return control(TYPES[frame.type], 0, words(frame.values.size, ...[...frame.values].flat()));
    case 'ping':
      return control(TYPES[frame.type], 0, words(frame.id));
    case 'goaway':
      return control(TYPES[frame.type], 0, words(frame.lastStream, frame.status));
    case 'window-update':
      return control(TYPES[frame.type], 0, words(frame.stream, frame.delta));
  }
}

/**
 * Makes what takes bytes as they come and gives the frames that are whole; it holds at most one frame. Frames of types
 * there are not are left out. Throws RangeError for what is no SPDY/3.1; nothing follows then.
 */
export function createFrameReader(): (bytes: Uint8Array) => SpdyFrame[] {
  let pending: Buffer = Buffer.alloc(0);
  return (bytes) => {
    pending = pending.length === 0 ? Buffer.from(bytes) : Buffer.concat([pending, bytes]);
    const frames: SpdyFrame[] = [];
    while (pending.length >= 8) {
      const length = pending.readUInt32BE(4) & 0xff_ffff;
      if (length > MAX_FRAME) throw new RangeError('a frame is too long');
      if (pending.length < 8 + length) break;
      const frame = decodeFrame(pending.subarray(0, 8 + length));
      if (frame) frames.push(frame);
      pending = pending.subarray(8 + length);
    }
    return frames;
  };
}

/** One whole frame; undefined for a type there is not. Throws RangeError when it is malformed. */
function decodeFrame(bytes: Buffer): SpdyFrame | undefined {
  const first = bytes.readUInt32BE(0);
  const payload = bytes.subarray(8);
  const fin = (bytes[4]! & FIN) !== 0;
  if (first >>> 31 === 0) {
    if (first === 0) throw new RangeError('data of no stream');
    return { type: 'data', stream: first, fin, bytes: payload };
  }
  if (((first >>> 16) & 0x7fff) !== VERSION) throw new RangeError('not SPDY/3');
  const word = (at: number): number => payload.readUInt32BE(at);
  const id = (at: number): number => word(at) & 0x7fff_ffff;
  const ofStream = (size: number, exact: boolean): number => {
    if (exact ? payload.length !== size : payload.length < size) throw new RangeError('a frame of a wrong length');
    const stream = id(0);
    if (stream === 0) throw new RangeError('a frame of no stream');
    return stream;
  };
  const fixed = (size: number): void => {
    if (payload.length !== size) throw new RangeError('a frame of a wrong length');
  };
  switch (first & 0xffff) {
    case TYPES['syn-stream']:
      return { type: 'syn-stream', stream: ofStream(10, false), fin, block: payload.subarray(10) };
    case TYPES['syn-reply']:
      return { type: 'syn-reply', stream: ofStream(4, false), fin, block: payload.subarray(4) };
    case TYPES.headers:
      return { type: 'headers', stream: ofStream(4, false), fin, block: payload.subarray(4) };
    case TYPES['rst-stream']:
      return { type: 'rst-stream', stream: ofStream(8, true), status: word(4) };
    case TYPES.settings: {
      if (payload.length < 4) throw new RangeError('a frame of a wrong length');
      const count = word(0);
      if (count > MAX_SETTINGS) throw new RangeError('too many settings');
      fixed(4 + count * 8);
      const values = new Map<number, number>();
      // The highest byte of a key is a flag.
      for (let i = 0; i < count; i++) values.set(word(4 + i * 8) & 0xff_ffff, word(8 + i * 8));
      return { type: 'settings', values };
    }
    case TYPES.ping:
      fixed(4);
      return { type: 'ping', id: word(0) };
    case TYPES.goaway:
      fixed(8);
      return { type: 'goaway', lastStream: id(0), status: word(4) };
    case TYPES['window-update']: {
      fixed(8);
      const delta = id(4);
      if (delta === 0) throw new RangeError('a window that does not grow');
      return { type: 'window-update', stream: id(0), delta };
    }
    default:
      return undefined;
  }
}

/** A header block before compression: names and values, each with its length before it. */
export function encodeHeaders(headers: ReadonlyMap<string, string>): Uint8Array {
  const parts: Uint8Array[] = [words(headers.size)];
  for (const pair of headers) {
    for (const text of pair) {
      const bytes = Buffer.from(text, 'latin1');
      parts.push(words(bytes.length), bytes);
    }
  }
  return Buffer.concat(parts);
}

/** Reads such a block; a value may be several, joined by NUL. Throws RangeError when it is malformed. */
export function decodeHeaders(block: Uint8Array): Map<string, string> {
  const bytes = Buffer.from(block.buffer, block.byteOffset, block.byteLength);
  const found = new Map<string, string>();
  let at = 0;
  const number = (): number => {
    if (at + 4 > bytes.length) throw new RangeError('headers are cut off');
    at += 4;
    return bytes.readUInt32BE(at - 4);
  };
  const text = (): string => {
    const length = number();
    if (length > bytes.length - at) throw new RangeError('headers are cut off');
    at += length;
    return bytes.toString('latin1', at - length, at);
  };
  for (let left = number(); left > 0; left--) {
    const name = text();
    if (name === '' || found.has(name)) throw new RangeError('a header without a name of its own');
    found.set(name, text());
  }
  if (at !== bytes.length) throw new RangeError('something follows the headers');
  return found;
}

function words(...numbers: number[]): Buffer {
  const bytes = Buffer.alloc(numbers.length * 4);
  for (const [i, number] of numbers.entries()) bytes.writeUInt32BE(number >>> 0, i * 4);
  return bytes;
}

function control(type: number, flags: number, ...payload: Uint8Array[]): Buffer {
  const length = payload.reduce((sum, part) => sum + part.length, 0);
  const head = Buffer.alloc(8);
  head.writeUInt16BE(0x8000 | VERSION, 0);
  head.writeUInt16BE(type, 2);
  head.writeUInt32BE(length, 4);
  head[4] = flags;
  return Buffer.concat([head, ...payload]);
}
