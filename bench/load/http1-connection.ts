/** A client's half of HTTP/1.1 over TLS for the load generator: one request at a time, answers with a content-length. */
import { connect, type TLSSocket } from 'node:tls';
import type { Endpoint, RequestTemplate } from './load.ts';

const HEAD_END = Buffer.from('\r\n\r\n');

/** The bytes of a request, head and body. */
export function encodeHttp1(request: RequestTemplate, authority: string): Buffer {
  const head = [
    `${request.method} ${request.path} HTTP/1.1`,
    `host: ${authority}`,
    'accept: application/json',
    'user-agent: bench/1',
  ];
  if (request.acceptEncoding !== undefined) head.push(`accept-encoding: ${request.acceptEncoding}`);
  if (request.body !== undefined)
    head.push('content-type: application/json', `content-length: ${Buffer.byteLength(request.body)}`);
  return Buffer.from(`${head.join('\r\n')}\r\n\r\n${request.body ?? ''}`);
}

export class Http1Connection {
  readonly #socket: TLSSocket;
  #onAnswer: ((bytes: number) => void) | undefined;
  #head: Buffer | undefined;
  /** Body bytes still to come; -1 while the head is being read. */
  #left = -1;
  #length = 0;
  #failed: (error: Error) => void;
  /** Rejects when the connection breaks or an answer is no success. */
  readonly failure: Promise<never>;

  private constructor(socket: TLSSocket) {
    this.#socket = socket;
    this.#failed = () => {};
    this.failure = new Promise((_, reject) => {
      this.#failed = reject;
    });
    this.failure.catch(() => {});
    socket.on('data', (chunk: Buffer) => {
      try {
        this.#read(chunk);
      } catch (error) {
        this.#failed(error as Error);
      }
    });
    socket.on('error', (error) => this.#failed(error));
    socket.on('close', () => this.#failed(new Error('the server closed the connection')));
  }

  static open(endpoint: Endpoint): Promise<Http1Connection> {
    return new Promise((resolve, reject) => {
      const { host, port, ca, certificate, key } = endpoint;
      const socket = connect({ host, port, ca, cert: certificate, key, ALPNProtocols: ['http/1.1'] });
      socket.setNoDelay(true);
      socket.once('error', reject);
      socket.once('secureConnect', () => {
        socket.off('error', reject);
        resolve(new Http1Connection(socket));
      });
    });
  }

  /** Sends a request; `onAnswer` gets the body's length. Only one may be on its way. */
  send(request: Buffer, onAnswer: (bytes: number) => void): void {
    this.#onAnswer = onAnswer;
    this.#socket.write(request);
  }

  close(): void {
    this.#socket.destroy();
  }

  #read(chunk: Buffer): void {
    let body = chunk.length;
    if (this.#left < 0) {
      const buffer = this.#head ? Buffer.concat([this.#head, chunk]) : chunk;
      const end = buffer.indexOf(HEAD_END);
      if (end < 0) {
        this.#head = buffer;
        return;
      }
      this.#head = undefined;
      const head = buffer.toString('latin1', 0, end);
      if (head[9] !== '2')
        throw new Error(`answer: ${head.slice(0, 200)} ${buffer.toString('latin1', end + 4, end + 500)}`);
      const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1];
      if (length === undefined) throw new Error('an answer without content-length');
      this.#length = Number(length);
      this.#left = this.#length;
      body = buffer.length - end - HEAD_END.length;
    }
    this.#left -= body;
    if (this.#left > 0) return;
    if (this.#left < 0) throw new Error('more bytes than the answer has');
    this.#left = -1;
    this.#onAnswer?.(this.#length);
  }
}
