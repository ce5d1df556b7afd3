/**
 * What Node itself can do: bare TLS servers for HTTP/1.1 and HTTP/2 that read the request's body and answer with fixed
 * bytes. The path names the answer: `/small` 2 kB, `/page`, `/page.gz` and `/list` as large as the API's own.
 */
import { createSecureServer, type ServerHttp2Stream } from 'node:http2';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';

export interface PlainServerOptions {
  readonly certificate: string;
  readonly key: string;
  readonly ca: string;
  /** Bytes of the answer by path. */
  readonly sizes: Readonly<Record<string, number>>;
}

process.once('message', (options: PlainServerOptions) => {
  const { certificate: cert, key, ca, sizes } = options;
  const bodies = new Map(Object.entries(sizes).map(([path, size]) => [path, Buffer.alloc(size, 'x')]));
  const tls = { cert, key, ca, requestCert: true, rejectUnauthorized: true };

  const http2 = createSecureServer({ ...tls, maxSessionMemory: 128, settings: { initialWindowSize: 1024 * 1024 } });
  http2.on('stream', (stream: ServerHttp2Stream, headers) => {
    const body = bodies.get(headers[':path'] as string) ?? Buffer.alloc(0);
    const answer = (): void => {
      stream.respond({ ':status': 200, 'content-type': 'application/json', 'content-length': body.length });
      stream.end(body);
    };
    stream.on('error', () => {});
    if (headers[':method'] === 'GET') return answer();
    stream.resume();
    stream.on('end', answer);
  });

  const http1 = createServer({ ...tls, noDelay: true }, (request, response) => {
    const body = bodies.get(request.url ?? '') ?? Buffer.alloc(0);
    const answer = (): void => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length });
      response.end(body);
    };
    if (request.method === 'GET') return answer();
    request.resume();
    request.on('end', answer);
  });

  http2.listen(0, '127.0.0.1', () => {
    http1.listen(0, '127.0.0.1', () => {
      const portOf = (server: { address(): unknown }): number => (server.address() as AddressInfo).port;
      process.send!({ http1: portOf(http1), http2: portOf(http2) });
    });
  });
});
process.on('disconnect', () => process.exit(0));
