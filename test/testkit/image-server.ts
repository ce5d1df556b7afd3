/** A web server of images on loopback, for tests: serves what it is given, and misbehaves on demand. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

interface Served {
  bytes: Uint8Array;
  etag: string;
}

export interface ImageServer {
  /** `http://127.0.0.1:port` */
  readonly url: string;
  /** `METHOD path`, with ` bytes=N-` where a range was asked for. */
  readonly requests: string[];
  /** Headers of the last request. */
  lastHeaders: IncomingMessage['headers'];
  /** Serves bytes under a path; another ETag each time. Returns the URL. */
  serve(path: string, bytes: Uint8Array): string;
  /** The next answers break off after so many bytes. */
  cut: number[];
  /** The next answers stop after so many bytes and stay open. */
  stall: number[];
  /** Milliseconds between pieces of 256 KiB; 0 for all at once. */
  pauseMs: number;
  /** The next answers have these codes. */
  fail: number[];
  /** Answers a path by a redirect. */
  readonly redirects: Map<string, string>;
  close(): Promise<void>;
}

const PIECE = 256 * 1024;

/** Starts one. */
export async function startImageServer(): Promise<ImageServer> {
  const files = new Map<string, Served>();
  let serial = 0;
  const answer = (request: IncomingMessage, response: ServerResponse): void => {
    const path = request.url ?? '';
    const range = request.headers.range;
    server.requests.push(`${request.method} ${path}${range ? ` ${range}` : ''}`);
    server.lastHeaders = request.headers;
    const code = server.fail.shift();
    const target = server.redirects.get(path);
    if (code !== undefined) return void response.writeHead(code).end();
    if (target !== undefined) return void response.writeHead(302, { location: target }).end();
    const file = files.get(path);
    if (!file) return void response.writeHead(404).end();
    const from = Number(/^bytes=(\d+)-$/.exec(range ?? '')?.[1] ?? 0);
    const isPart = from > 0 && from < file.bytes.length && request.headers['if-range'] === file.etag;
    const body = isPart ? file.bytes.subarray(from) : file.bytes;
    response.writeHead(isPart ? 206 : 200, {
      'content-length': body.length,
      etag: file.etag,
      ...(isPart && { 'content-range': `bytes ${from}-${file.bytes.length - 1}/${file.bytes.length}` }),
    });
    const stall = server.stall.shift();
    const cut = server.cut.shift();
    if (stall !== undefined) return void response.write(body.subarray(0, stall));
    if (cut !== undefined)
      return void response.write(body.subarray(0, cut), () => setImmediate(() => response.destroy()));
    if (server.pauseMs === 0) return void response.end(body);
    let at = 0;
    const pieces = setInterval(() => {
      response.write(body.subarray(at, at + PIECE));
      at += PIECE;
      if (at >= body.length) response.end();
    }, server.pauseMs);
    response.on('close', () => clearInterval(pieces));
  };
  const listener = createServer(answer);
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(listener.address() as AddressInfo).port}`;
  const server: ImageServer = {
    url,
    requests: [],
    lastHeaders: {},
    cut: [],
    stall: [],
    pauseMs: 0,
    fail: [],
    redirects: new Map(),
    serve(path, bytes) {
      files.set(path, { bytes, etag: `"${++serial}"` });
      return url + path;
    },
    close: () =>
      new Promise((resolve) => {
        listener.close(() => resolve());
        listener.closeAllConnections();
      }),
  };
  return server;
}
