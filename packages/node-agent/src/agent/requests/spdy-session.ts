/**
 * The server's side of a SPDY/3.1 session over a message socket: what kubectl speaks for port-forward, inside its
 * WebSocket (sub-protocol `SPDY/3.1+portforward.k8s.io`) or as the bytes of an upgraded connection. Streams are opened by
 * the far end only. kubectl's side (moby/spdystream) has no windows and takes ours for nothing; the socket's own back
 * pressure serves there. Windows are counted all the same, and kept from the moment the far end shows that it counts too.
 */
import { constants, createDeflate, createInflate, type Deflate, type Inflate } from 'node:zlib';
import type { MessageSocket } from '@coracle/runtime/http/seam';
import { SPDY_DICTIONARY } from './spdy-dictionary.ts';
import {
  CANCEL,
  createFrameReader,
  decodeHeaders,
  encodeFrame,
  encodeHeaders,
  INITIAL_WINDOW,
  INITIAL_WINDOW_SETTING,
  REFUSED_STREAM,
  type SpdyFrame,
} from './spdy-frames.ts';

/** Streams open at a time; further ones are refused. A frame longer than MAX_FRAME ends the session. */
const MAX_STREAMS = 512;
/** Payload of one data frame we send. */
const CHUNK = 32 * 1024;
/** What a window may grow to (2.6.8). */
const MAX_WINDOW = 0x7fff_ffff;

/** One stream. Listeners are set in `onStream`, before anything can arrive. */
export interface SpdyStream {
  readonly headers: ReadonlyMap<string, string>;
  onData: (bytes: Uint8Array) => void;
  /** The far end sends nothing more. */
  onEnd: () => void;
  /** The stream is gone, by a reset or with the session. */
  onClose: () => void;
  write(bytes: Uint8Array): void;
  /** Bytes written that wait for the far end's window. */
  readonly buffered: number;
  /** We send nothing more. */
  end(): void;
  reset(): void;
}

interface Held extends SpdyStream {
  readonly id: number;
  buffered: number;
  readonly queue: Uint8Array[];
  /** Bytes the far end still takes, and bytes taken from it that it was not notified of. */
  window: number;
  unacknowledged: number;
  remoteEnded: boolean;
  /** We have no more to say; and: we have said so. */
  ending: boolean;
  localEnded: boolean;
}

/** Serves a session until the socket closes. */
export function serveSpdy(socket: MessageSocket, onStream: (stream: SpdyStream) => void): void {
  const streams = new Map<number, Held>();
  const headers = createHeaderCodec();
  const reader = createFrameReader();
  let closed = false;
  let broken = false;
  let lastStream = 0;
  let initialWindow = INITIAL_WINDOW;
  let sessionWindow = INITIAL_WINDOW;
  let sessionUnacknowledged = 0;
  /** Whether the far end has shown that it counts windows. */
  let counts = false;
  /** Frames are taken one after the other: header blocks are one compressed stream. */
  let turn: Promise<void> = Promise.resolve();

  const send = (frame: SpdyFrame): void => {
    if (!closed) socket.send(encodeFrame(frame));
  };
  const fail = (reason: string): void => {
    if (closed) return;
    send({ type: 'goaway', lastStream, status: 1 });
    socket.close(1002, reason);
    end();
  };
  const end = (): void => {
    if (closed) return;
    closed = true;
    headers.close();
    for (const stream of [...streams.values()]) stream.onClose();
    streams.clear();
  };
  const settle = (stream: Held): void => {
    if (stream.remoteEnded && stream.localEnded) streams.delete(stream.id);
  };

  /** Sends what the windows allow. */
  const flush = (stream: Held): void => {
    while (stream.queue.length > 0) {
      const room = counts ? Math.min(CHUNK, stream.window, sessionWindow) : CHUNK;
      if (room <= 0) return;
      const first = stream.queue[0]!;
      const bytes = first.subarray(0, room);
      if (bytes.length === first.length) stream.queue.shift();
      else stream.queue[0] = first.subarray(room);
      stream.window -= bytes.length;
      sessionWindow -= bytes.length;
      stream.buffered -= bytes.length;
      send({ type: 'data', stream: stream.id, fin: false, bytes });
    }
    if (!stream.ending || stream.localEnded) return;
    stream.localEnded = true;
    send({ type: 'data', stream: stream.id, fin: true, bytes: new Uint8Array(0) });
    settle(stream);
  };
  const flushAll = (): void => {
    for (const stream of [...streams.values()]) flush(stream);
  };

  const open = async ({ stream: id, fin, block }: SpdyFrame & { type: 'syn-stream' }): Promise<void> => {
    if (id % 2 === 0) return fail('a stream of ours');
    lastStream = id;
    // Also of a stream that is refused: the next block builds on this one.
    const found = decodeHeaders(await headers.read(block));
    if (closed) return;
    if (streams.size >= MAX_STREAMS || streams.has(id)) {
      return send({ type: 'rst-stream', stream: id, status: REFUSED_STREAM });
    }
    const reply = await headers.write(encodeHeaders(new Map()));
    if (closed) return;
    send({ type: 'syn-reply', stream: id, fin: false, block: reply });
    const stream: Held = {
      id,
      headers: found,
      queue: [],
      buffered: 0,
      window: initialWindow,
      unacknowledged: 0,
      remoteEnded: fin,
      ending: false,
      localEnded: false,
      onData: () => {},
      onEnd: () => {},
      onClose: () => {},
      write(bytes) {
        if (stream.ending || closed || bytes.length === 0) return;
        stream.queue.push(bytes);
        stream.buffered += bytes.length;
        flush(stream);
      },
      end() {
        if (stream.ending) return;
        stream.ending = true;
        flush(stream);
      },
      reset() {
        if (!streams.delete(id)) return;
        stream.ending = true;
        stream.queue.length = 0;
        send({ type: 'rst-stream', stream: id, status: CANCEL });
      },
    };
    streams.set(id, stream);
    onStream(stream);
    if (stream.remoteEnded) stream.onEnd();
  };

  /** Tells the far end that it may send more, once half of a window was taken. */
  const taken = (size: number, stream: Held | undefined): void => {
    sessionUnacknowledged += size;
    if (sessionUnacknowledged >= INITIAL_WINDOW / 2) {
      send({ type: 'window-update', stream: 0, delta: sessionUnacknowledged });
      sessionUnacknowledged = 0;
    }
    if (!stream || stream.remoteEnded) return;
    stream.unacknowledged += size;
    if (stream.unacknowledged < INITIAL_WINDOW / 2) return;
    send({ type: 'window-update', stream: stream.id, delta: stream.unacknowledged });
    stream.unacknowledged = 0;
  };

  const onFrame = async (frame: SpdyFrame): Promise<void> => {
    switch (frame.type) {
      case 'data': {
        const stream = streams.get(frame.stream);
        if (stream && !stream.remoteEnded) {
          if (frame.bytes.length > 0) stream.onData(frame.bytes);
          if (frame.fin) {
            stream.remoteEnded = true;
            stream.onEnd();
            settle(stream);
          }
        }
        return taken(frame.bytes.length, stream);
      }
      case 'syn-stream':
        return open(frame);
      case 'syn-reply':
      case 'headers':
        // Of no use here; the next block builds on it nevertheless.
        await headers.read(frame.block);
        return;
      case 'rst-stream': {
        const stream = streams.get(frame.stream);
        if (!stream) return;
        streams.delete(stream.id);
        stream.ending = true;
        stream.queue.length = 0;
        return stream.onClose();
      }
      case 'settings': {
        const window = frame.values.get(INITIAL_WINDOW_SETTING);
        if (window === undefined) return;
        if (window > MAX_WINDOW) return fail('a window is too large');
        counts = true;
        for (const stream of streams.values()) stream.window += window - initialWindow;
        initialWindow = window;
        return flushAll();
      }
      case 'window-update': {
        counts = true;
        const stream = streams.get(frame.stream);
        if (frame.stream === 0) sessionWindow += frame.delta;
        else if (stream) stream.window += frame.delta;
        if (sessionWindow > MAX_WINDOW || (stream && stream.window > MAX_WINDOW)) return fail('a window is too large');
        return flushAll();
      }
      case 'ping':
        // Odd ids are the client's questions; even ones would answer ours.
        if (frame.id % 2 === 1) send(frame);
        return;
      case 'goaway':
        return;
    }
  };

  socket.onClose(end);
  socket.onMessage((bytes) => {
    if (closed || broken) return;
    try {
      for (const frame of reader.push(bytes))
        turn = turn
          .then(() => (closed ? undefined : onFrame(frame)))
          .catch((error: Error) => fail(error.message.slice(0, 100)));
    } catch (error) {
      // What came whole before it is still taken, and nothing behind it.
      broken = true;
      turn = turn.then(() => fail((error as Error).message));
    }
  });
}

/** Header blocks of each direction are one zlib stream, flushed after each block. */
function createHeaderCodec() {
  const inflate = createInflate({ dictionary: SPDY_DICTIONARY });
  const deflate = createDeflate({ dictionary: SPDY_DICTIONARY, flush: constants.Z_SYNC_FLUSH });
  return {
    read: (block: Uint8Array): Promise<Buffer> => pass(inflate, block),
    write: (block: Uint8Array): Promise<Buffer> => pass(deflate, block),
    close: (): void => {
      inflate.destroy();
      deflate.destroy();
    },
  };
}

/** Bytes one header block may become: a short one must not fill the memory. */
const MAX_HEADERS = 64 * 1024;

function pass(codec: Inflate | Deflate, block: Uint8Array): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const onData = (chunk: Buffer): void => {
      chunks.push(chunk);
      size += chunk.length;
      if (size > MAX_HEADERS) codec.destroy(new Error('headers are too long'));
    };
    const done = (error?: Error | null): void => {
      codec.off('data', onData);
      codec.off('error', done);
      codec.off('close', closed);
      if (error) reject(error);
      else resolve(Buffer.concat(chunks));
    };
    const closed = (): void => done(new Error('the session has ended'));
    codec.on('data', onData);
    codec.once('error', done);
    codec.once('close', closed);
    codec.write(block, (error) => {
      if (error) done(error);
      else codec.flush(constants.Z_SYNC_FLUSH, () => done());
    });
  });
}
