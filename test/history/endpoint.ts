/** How a load reaches a server: over TLS with nothing but node:https, or straight into a handler of this process. */
import { readFileSync } from 'node:fs';
import { Agent, request as httpsRequest, type RequestOptions } from 'node:https';
import { join } from 'node:path';
import { parse } from 'yaml';
import { type ApiHandler, type ByteSink, NO_BYTES, type Peer } from '../../packages/runtime/src/http/seam.ts';

export interface Answered {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: answers of every shape.
  readonly json: any;
}

export interface Endpoint {
  /** Rejects when no whole answer came. Never asks twice. */
  ask(method: string, target: string, body?: unknown): Promise<Answered>;
  /**
   * Hands over the documents of a watch, one by one. Resolves with the status, and how the stream ended: by the server,
   * by a broken connection, or because `signal` was aborted. Rejects when it could not be begun.
   */
  // biome-ignore lint/suspicious/noExplicitAny: events of every shape.
  watch(target: string, onFrame: (frame: any) => void, signal: AbortSignal): Promise<{ status: number; cut: boolean }>;
  close(): void;
}

const contentType = (method: string): string =>
  method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';

/** Cuts a stream of bytes into its lines. */
function lineReader(onLine: (line: string) => void): (chunk: Uint8Array) => void {
  const decoder = new TextDecoder();
  let rest = '';
  return (chunk) => {
    rest += decoder.decode(chunk, { stream: true });
    for (let end = rest.indexOf('\n'); end >= 0; end = rest.indexOf('\n')) {
      const line = rest.slice(0, end);
      rest = rest.slice(end + 1);
      if (line !== '') onLine(line);
    }
  };
}

/** Reaches a running server as the admin of its data directory. */
export function httpsEndpoint(dataDir: string): Endpoint {
  const config = parse(readFileSync(join(dataDir, 'kubeconfig'), 'utf8'));
  const { cluster } = config.clusters[0];
  const { user } = config.users[0];
  const bytes = (data: string): Buffer => Buffer.from(data, 'base64');
  const agent = new Agent({
    keepAlive: true,
    maxSockets: 64,
    ca: bytes(cluster['certificate-authority-data']),
    cert: bytes(user['client-certificate-data']),
    key: bytes(user['client-key-data']),
  });
  const options = (method: string, target: string, more: RequestOptions): [URL, RequestOptions] => [
    new URL(target, cluster.server),
    { method, agent, ...more, headers: { accept: 'application/json', ...more.headers } },
  ];
  return {
    ask: (method, target, body) =>
      new Promise((resolve, reject) => {
        const sent = body === undefined ? undefined : Buffer.from(JSON.stringify(body));
        const headers = sent ? { 'content-type': contentType(method), 'content-length': sent.length } : {};
        const call = httpsRequest(...options(method, target, { headers, timeout: 20_000 }), (response) => {
          const parts: Buffer[] = [];
          response.on('data', (part: Buffer) => parts.push(part));
          response.on('error', reject);
          response.on('close', () => {
            if (!response.complete) return reject(new Error('the answer was cut'));
            const text = Buffer.concat(parts).toString();
            try {
              resolve({ status: response.statusCode!, json: text.startsWith('{') ? JSON.parse(text) : text });
            } catch (error) {
              reject(error);
            }
          });
        });
        call.on('error', reject);
        call.on('timeout', () => call.destroy(new Error('no answer within 20 s')));
        call.end(sent);
      }),
    watch: (target, onFrame, signal) =>
      new Promise((resolve, reject) => {
        const call = httpsRequest(...options('GET', target, { signal }), (response) => {
          const read = lineReader((line) => onFrame(JSON.parse(line)));
          response.on('data', read);
          response.on('error', () => {});
          response.on('close', () => resolve({ status: response.statusCode!, cut: !response.complete }));
        });
        call.on('error', reject);
        call.end();
      }),
    close: () => agent.destroy(),
  };
}

const decoder = new TextDecoder();
const ADMIN: Peer = {
  address: '',
  certificate: { verified: true, commonName: 'admin', organizations: ['system:masters'], fingerprint: 'admin' },
};

/** Reaches a handler of this process. `handler` is asked for anew with each call: it changes at a restart. */
export function handlerEndpoint(handler: () => ApiHandler): Endpoint {
  const call = (method: string, target: string, body: unknown, signal: AbortSignal) => {
    const [path = '', query = ''] = target.split('?');
    return handler()({
      method,
      path,
      query,
      headers: { accept: 'application/json', ...(body !== undefined && { 'content-type': contentType(method) }) },
      body: body === undefined ? NO_BYTES : new TextEncoder().encode(JSON.stringify(body)),
      peer: ADMIN,
      signal,
    });
  };
  return {
    async ask(method, target, body) {
      const response = await call(method, target, body, AbortSignal.timeout(20_000));
      if (typeof response.body === 'function') throw new Error('a stream');
      const chunks = response.body instanceof Uint8Array ? [response.body] : (response.body ?? []);
      const text = chunks.map((chunk) => decoder.decode(chunk)).join('');
      return { status: response.status, json: text.startsWith('{') ? JSON.parse(text) : text };
    },
    async watch(target, onFrame, signal) {
      const response = await call('GET', target, undefined, signal);
      const { status, body } = response;
      if (typeof body !== 'function') return { status, cut: false };
      return await new Promise((resolve) => {
        const read = lineReader((line) => onFrame(JSON.parse(line)));
        const sink: ByteSink = {
          buffered: 0,
          signal,
          drained: () => Promise.resolve(),
          write(chunk) {
            read(chunk);
            return true;
          },
          end: () => resolve({ status, cut: false }),
        };
        signal.addEventListener('abort', () => resolve({ status, cut: true }), { once: true });
        body(sink);
      });
    },
    close: () => {},
  };
}
