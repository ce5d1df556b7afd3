/**
 * The server's side of a SPDY/3.1 session over a message socket: what kubectl speaks for port-forward, inside its
 * WebSocket (sub-protocol `SPDY/3.1+portforward.k8s.io`) or as the bytes of an upgraded connection. Streams are opened by
 * the far end only. kubectl's side (moby/spdystream) has no windows and takes ours for nothing; the socket's own back
 * pressure serves there. Windows are counted all the same, and kept from the moment the far end shows that it counts too.
 */
import type { MessageSocket } from '@coracle/runtime/http/seam';
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
import { createHeaderCodec } from './spdy-header-codec.ts';

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
  new Session(socket, onStream);
}

/** The state of one session. Frames are taken one after the other: header blocks are one compressed stream. */
class Session {
  readonly #socket: MessageSocket;
  readonly #onStream: (stream: SpdyStream) => void;
  readonly #streams = new Map<number, Held>();
  readonly #headers = createHeaderCodec();
  readonly #read = createFrameReader();
  #closed = false;
  #broken = false;
  #lastStream = 0;
  #initialWindow = INITIAL_WINDOW;
  #sessionWindow = INITIAL_WINDOW;
  #sessionUnacknowledged = 0;
  /** Whether the far end has shown that it counts windows. */
  #counts = false;
  #turn: Promise<void> = Promise.resolve();

  constructor(socket: MessageSocket, onStream: (stream: SpdyStream) => void) {
    this.#socket = socket;
    this.#onStream = onStream;
    socket.onClose(() => this.#end());
    socket.onMessage((bytes) => this.#receive(bytes));
  }

  #receive(bytes: Uint8Array): void {
    if (this.#closed || this.#broken) return;
    try {
      for (const frame of this.#read(bytes))
        this.#turn = this.#turn
          .then(() => (this.#closed ? undefined : this.#onFrame(frame)))
          .catch((error: Error) => this.#fail(error.message.slice(0, 100)));
    } catch (error) {
      // What came whole before it is still taken, and nothing behind it.
      this.#broken = true;
      this.#turn = this.#turn.then(() => this.#fail((error as Error).message));
    }
  }

  #send(frame: SpdyFrame): void {
    if (!this.#closed) this.#socket.send(encodeFrame(frame));
  }

  #fail(reason: string): void {
    if (this.#closed) return;
    this.#send({ type: 'goaway', lastStream: this.#lastStream, status: 1 });
    this.#socket.close(1002, reason);
    this.#end();
  }

  #end(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#headers.close();
    for (const stream of [...this.#streams.values()]) stream.onClose();
    this.#streams.clear();
  }

  #settle(stream: Held): void {
    if (stream.remoteEnded && stream.localEnded) this.#streams.delete(stream.id);
  }

  /** Sends what the windows allow. */
  #flush(stream: Held): void {
    while (stream.queue.length > 0) {
      const room = this.#counts ? Math.min(CHUNK, stream.window, this.#sessionWindow) : CHUNK;
      if (room <= 0) return;
      const first = stream.queue[0]!;
      const bytes = first.subarray(0, room);
      if (bytes.length === first.length) stream.queue.shift();
      else stream.queue[0] = first.subarray(room);
      stream.window -= bytes.length;
      this.#sessionWindow -= bytes.length;
      stream.buffered -= bytes.length;
      this.#send({ type: 'data', stream: stream.id, fin: false, bytes });
    }
    if (!stream.ending || stream.localEnded) return;
    stream.localEnded = true;
    this.#send({ type: 'data', stream: stream.id, fin: true, bytes: new Uint8Array(0) });
    this.#settle(stream);
  }

  #flushAll(): void {
    for (const stream of [...this.#streams.values()]) this.#flush(stream);
  }

  async #open({ stream: id, fin, block }: SpdyFrame & { type: 'syn-stream' }): Promise<void> {
    if (id % 2 === 0) return this.#fail('a stream of ours');
    this.#lastStream = id;
    // Also of a stream that is refused: the next block builds on this one.
    const found = decodeHeaders(await this.#headers.read(block));
    if (this.#closed) return;
    if (this.#streams.size >= MAX_STREAMS || this.#streams.has(id)) {
      return this.#send({ type: 'rst-stream', stream: id, status: REFUSED_STREAM });
    }
    const reply = await this.#headers.write(encodeHeaders(new Map()));
    if (this.#closed) return;
    this.#send({ type: 'syn-reply', stream: id, fin: false, block: reply });
    const stream = this.#streamOf(id, found, fin);
    this.#streams.set(id, stream);
    this.#onStream(stream);
    if (stream.remoteEnded) stream.onEnd();
  }

  #streamOf(id: number, headers: ReadonlyMap<string, string>, remoteEnded: boolean): Held {
    const stream: Held = {
      id,
      headers,
      queue: [],
      buffered: 0,
      window: this.#initialWindow,
      unacknowledged: 0,
      remoteEnded,
      ending: false,
      localEnded: false,
      onData: () => {},
      onEnd: () => {},
      onClose: () => {},
      write: (bytes) => {
        if (stream.ending || this.#closed || bytes.length === 0) return;
        stream.queue.push(bytes);
        stream.buffered += bytes.length;
        this.#flush(stream);
      },
      end: () => {
        if (stream.ending) return;
        stream.ending = true;
        this.#flush(stream);
      },
      reset: () => {
        if (!this.#streams.delete(id)) return;
        stream.ending = true;
        stream.queue.length = 0;
        this.#send({ type: 'rst-stream', stream: id, status: CANCEL });
      },
    };
    return stream;
  }

  /** Tells the far end that it may send more, once half of a window was taken. */
  #taken(size: number, stream: Held | undefined): void {
    this.#sessionUnacknowledged += size;
    if (this.#sessionUnacknowledged >= INITIAL_WINDOW / 2) {
      this.#send({ type: 'window-update', stream: 0, delta: this.#sessionUnacknowledged });
      this.#sessionUnacknowledged = 0;
    }
    if (!stream || stream.remoteEnded) return;
    stream.unacknowledged += size;
    if (stream.unacknowledged < INITIAL_WINDOW / 2) return;
    this.#send({ type: 'window-update', stream: stream.id, delta: stream.unacknowledged });
    stream.unacknowledged = 0;
  }

  async #onFrame(frame: SpdyFrame): Promise<void> {
    switch (frame.type) {
      case 'data': {
        const stream = this.#streams.get(frame.stream);
        if (stream && !stream.remoteEnded) {
          if (frame.bytes.length > 0) stream.onData(frame.bytes);
          if (frame.fin) {
            stream.remoteEnded = true;
            stream.onEnd();
            this.#settle(stream);
          }
        }
        return this.#taken(frame.bytes.length, stream);
      }
      case 'syn-stream':
        return this.#open(frame);
      case 'syn-reply':
      case 'headers':
        // Of no use here; the next block builds on it nevertheless.
        await this.#headers.read(frame.block);
        return;
      case 'rst-stream': {
        const stream = this.#streams.get(frame.stream);
        if (!stream) return;
        this.#streams.delete(stream.id);
        stream.ending = true;
        stream.queue.length = 0;
        return stream.onClose();
      }
      case 'settings': {
        const window = frame.values.get(INITIAL_WINDOW_SETTING);
        if (window === undefined) return;
        if (window > MAX_WINDOW) return this.#fail('a window is too large');
        this.#counts = true;
        for (const stream of this.#streams.values()) stream.window += window - this.#initialWindow;
        this.#initialWindow = window;
        return this.#flushAll();
      }
      case 'window-update': {
        this.#counts = true;
        const stream = this.#streams.get(frame.stream);
        if (frame.stream === 0) this.#sessionWindow += frame.delta;
        else if (stream) stream.window += frame.delta;
        if (this.#sessionWindow > MAX_WINDOW || (stream && stream.window > MAX_WINDOW))
          return this.#fail('a window is too large');
        return this.#flushAll();
      }
      case 'ping':
        // Odd ids are the client's questions; even ones would answer ours.
        if (frame.id % 2 === 1) this.#send(frame);
        return;
      case 'goaway':
        return;
    }
  }
}
