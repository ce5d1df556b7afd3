/**
 * A client's half of HTTP/2 over TLS, as lean as a load generator needs it: requests are encoded beforehand (HPACK
 * literals without index), of the answers only frames are read. It keeps to the peer's flow control for what it sends
 * and opens its own windows wide. Statuses stay compressed: the server's own counters tell whether all went well.
 */
import { connect, type TLSSocket } from 'node:tls';
import type { Endpoint } from './load.ts';

const DATA = 0;
const HEADERS = 1;
const RST_STREAM = 3;
const SETTINGS = 4;
const PING = 6;
const GOAWAY = 7;
const WINDOW_UPDATE = 8;
const ACK = 1;
const MAX_CONCURRENT_STREAMS = 3;
const END_STREAM = 1;
const END_HEADERS = 4;

const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
const LARGEST_WINDOW = 0x7fffffff;
const FIRST_WINDOW = 65_535;
/** The connection's window is opened again after this many bytes. */
const REOPEN_AFTER = 1024 * 1024;
/** Largest frame every peer takes. */
const MAX_FRAME = 16_384;

/** One request, encoded; may be sent any number of times. */
export interface EncodedRequest {
  readonly block: Buffer;
  readonly body: Buffer | undefined;
}

export interface StreamListener {
  data?(chunk: Buffer): void;
  end(bytes: number): void;
}

/** Encodes a request for `Http2Connection.send`. */
export function encodeRequest(
  request: {
    readonly method: string;
    readonly path: string;
    readonly body?: string | undefined;
    readonly acceptEncoding?: string;
  },
  authority: string,
): EncodedRequest {
  const body = request.body === undefined ? undefined : Buffer.from(request.body);
  const fields: [string, string][] = [
    [':method', request.method],
    [':scheme', 'https'],
    [':authority', authority],
    [':path', request.path],
    ['accept', 'application/json'],
    ['user-agent', 'bench/1'],
  ];
  if (request.acceptEncoding !== undefined) fields.push(['accept-encoding', request.acceptEncoding]);
  if (body) fields.push(['content-type', 'application/json'], ['content-length', String(body.length)]);
  return {
    block: Buffer.concat(fields.flatMap(([name, value]) => [literal(name, 4, 0x00), literal(value, 7, 0)])),
    body,
  };
}

/** A string literal; for a field's name the byte before it says "literal, not indexed, new name". */
function literal(text: string, kind: 4 | 7, first: number): Buffer {
  const bytes = Buffer.from(text);
  const length = integer(bytes.length);
  return Buffer.concat(kind === 4 ? [Buffer.of(first), length, bytes] : [length, bytes]);
}

/** An HPACK integer with a prefix of seven bits, the eighth (Huffman) left at 0. */
function integer(value: number): Buffer {
  if (value < 127) return Buffer.of(value);
  const bytes = [127];
  let rest = value - 127;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 128);
  bytes.push(rest);
  return Buffer.from(bytes);
}

function frame(type: number, flags: number, { stream, payload }: { stream: number; payload: Buffer }): Buffer {
  const head = Buffer.allocUnsafe(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

function uint32(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

interface OpenStream {
  readonly listener: StreamListener;
  bytes: number;
}

export class Http2Connection {
  readonly #socket: TLSSocket;
  readonly #streams = new Map<number, OpenStream>();
  readonly #waiting: { request: EncodedRequest; listener: StreamListener }[] = [];
  #nextStream = 1;
  #sendWindow = FIRST_WINDOW;
  #maxStreams = 100;
  #received = 0;
  #rest: Buffer | undefined;
  #failed: (error: Error) => void;
  /** Rejects when the connection breaks or the server misbehaves. */
  readonly failure: Promise<never>;

  private constructor(socket: TLSSocket) {
    this.#socket = socket;
    this.#failed = () => {};
    this.failure = new Promise((_, reject) => {
      this.#failed = reject;
    });
    this.failure.catch(() => {});
    socket.on('data', (chunk: Buffer) => {
      socket.cork();
      try {
        this.#read(chunk);
      } catch (error) {
        this.#failed(error as Error);
      }
      socket.uncork();
    });
    socket.on('error', (error) => this.#failed(error));
    socket.on('close', () => this.#failed(new Error('the server closed the connection')));
    socket.write(
      Buffer.concat([
        PREFACE,
        // No pushes (2 = 0), stream windows as wide as they go (4 = 2^31 - 1).
        frame(SETTINGS, 0, {
          stream: 0,
          payload: Buffer.concat([Buffer.of(0, 2), uint32(0), Buffer.of(0, 4), uint32(LARGEST_WINDOW)]),
        }),
        frame(WINDOW_UPDATE, 0, { stream: 0, payload: uint32(LARGEST_WINDOW - FIRST_WINDOW) }),
      ]),
    );
  }

  static open(endpoint: Endpoint): Promise<Http2Connection> {
    return new Promise((resolve, reject) => {
      const { host, port, ca, certificate, key } = endpoint;
      const socket = connect({ host, port, ca, cert: certificate, key, ALPNProtocols: ['h2'] });
      socket.setNoDelay(true);
      socket.once('error', reject);
      socket.once('secureConnect', () => {
        socket.off('error', reject);
        resolve(new Http2Connection(socket));
      });
    });
  }

  /** Sends a request, or queues it while the peer's window is shut or it has all the streams it takes. */
  send(request: EncodedRequest, listener: StreamListener): void {
    if (this.#waiting.length === 0 && this.#hasRoom(request)) this.#write(request, listener);
    else this.#waiting.push({ request, listener });
  }

  close(): void {
    this.#socket.destroy();
  }

  #hasRoom({ body }: EncodedRequest): boolean {
    return (body?.length ?? 0) <= this.#sendWindow && this.#streams.size < this.#maxStreams;
  }

  #write({ block, body }: EncodedRequest, listener: StreamListener): void {
    const stream = this.#nextStream;
    this.#nextStream += 2;
    this.#streams.set(stream, { listener, bytes: 0 });
    this.#socket.write(frame(HEADERS, body ? END_HEADERS : END_HEADERS | END_STREAM, { stream, payload: block }));
    if (!body) return;
    this.#sendWindow -= body.length;
    for (let at = 0; at < body.length; at += MAX_FRAME) {
      const payload = body.subarray(at, at + MAX_FRAME);
      this.#socket.write(frame(DATA, at + MAX_FRAME >= body.length ? END_STREAM : 0, { stream, payload }));
    }
  }

  #read(chunk: Buffer): void {
    const buffer = this.#rest ? Buffer.concat([this.#rest, chunk]) : chunk;
    this.#rest = undefined;
    let at = 0;
    while (buffer.length - at >= 9) {
      const length = buffer.readUIntBE(at, 3);
      if (buffer.length - at - 9 < length) break;
      const payload = buffer.subarray(at + 9, at + 9 + length);
      this.#frame(buffer[at + 3]!, buffer[at + 4]!, { stream: buffer.readUInt32BE(at + 5), payload });
      at += 9 + length;
    }
    if (at < buffer.length) this.#rest = at === 0 ? buffer : buffer.subarray(at);
  }

  #frame(type: number, flags: number, { stream, payload }: { stream: number; payload: Buffer }): void {
    switch (type) {
      case DATA: {
        const open = this.#streams.get(stream);
        if (open) {
          open.bytes += payload.length;
          open.listener.data?.(payload);
        }
        this.#received += payload.length;
        if (this.#received >= REOPEN_AFTER) {
          this.#socket.write(frame(WINDOW_UPDATE, 0, { stream: 0, payload: uint32(this.#received) }));
          this.#received = 0;
        }
        if (flags & END_STREAM) this.#end(stream);
        return;
      }
      case HEADERS:
        if (flags & END_STREAM) this.#end(stream);
        return;
      case SETTINGS:
        if (flags & ACK) return;
        for (let at = 0; at + 6 <= payload.length; at += 6) {
          if (payload.readUInt16BE(at) === MAX_CONCURRENT_STREAMS) this.#maxStreams = payload.readUInt32BE(at + 2);
        }
        this.#socket.write(frame(SETTINGS, ACK, { stream: 0, payload: Buffer.alloc(0) }));
        return;
      case PING:
        if (!(flags & ACK)) this.#socket.write(frame(PING, ACK, { stream: 0, payload }));
        return;
      case WINDOW_UPDATE:
        if (stream === 0) this.#opened(payload.readUInt32BE(0));
        return;
      case RST_STREAM:
      case GOAWAY:
        throw new Error(
          `the server ended ${type === GOAWAY ? 'the connection' : 'a stream'}: ${payload.toString('hex')}`,
        );
    }
  }

  #end(stream: number): void {
    const open = this.#streams.get(stream);
    this.#streams.delete(stream);
    open?.listener.end(open.bytes);
    this.#sendWaiting();
  }

  #opened(by: number): void {
    this.#sendWindow += by;
    this.#sendWaiting();
  }

  #sendWaiting(): void {
    while (this.#waiting.length > 0 && this.#hasRoom(this.#waiting[0]!.request)) {
      const { request, listener } = this.#waiting.shift()!;
      this.#write(request, listener);
    }
  }
}
