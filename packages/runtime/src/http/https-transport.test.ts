import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createAuthority, openAuthority } from '../../../apiserver/src/auth/certificate-authority.ts';
import { systemClock } from '../clock/clock.ts';
import { silentLogger } from '../log/log.ts';
import { createHttpsTransport, type HttpsTransport } from './https-transport.ts';
import { createMessagePair } from './message-pair.ts';
import type { ApiHandler, ApiRequest, ApiResponse } from './seam.ts';
import { NEVER, NO_BYTES } from './seam.ts';
import { startTlsServer, type TlsServer } from './tls-server.ts';

const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);
const bytes = (value: string): Uint8Array => new TextEncoder().encode(value);

const request = (path: string, more: Partial<ApiRequest> = {}): ApiRequest => ({
  method: 'GET',
  path,
  query: '',
  headers: {},
  body: NO_BYTES,
  peer: { address: '' },
  signal: NEVER,
  ...more,
});

/** Chunks of a streamed body until it ends; `each` may stop it. */
async function collect(response: ApiResponse, each: (soFar: string) => void = () => {}): Promise<string> {
  const { body } = response;
  assert.equal(typeof body, 'function');
  let all = '';
  const stop = new AbortController();
  await new Promise<void>((resolve) => {
    if (typeof body !== 'function') return;
    body({
      write: (chunk) => {
        all += text(chunk);
        each(all);
        return true;
      },
      buffered: 0,
      drained: () => Promise.resolve(),
      end: resolve,
      signal: stop.signal,
    });
  });
  return all;
}

const watchesEnded: string[] = [];
const handler: ApiHandler = async (incoming) => {
  const { path, upgradable } = incoming;
  if (path === '/prefix/echo') {
    const { authorization = '', 'x-mine': mine = '' } = incoming.headers;
    const seen = { method: incoming.method, query: incoming.query, body: text(incoming.body), authorization, mine };
    const certificate = incoming.peer.certificate;
    return {
      status: 200,
      headers: { 'content-type': 'application/json' },
      body: bytes(JSON.stringify({ ...seen, user: certificate?.verified ? certificate.commonName : '' })),
    };
  }
  if (path.startsWith('/prefix/watch')) {
    return {
      status: 200,
      headers: {},
      body: (sink) => {
        sink.write(bytes('one\n'));
        if (path.endsWith('/short')) {
          sink.write(bytes('two\n'));
          sink.end();
        }
        sink.signal.addEventListener('abort', () => watchesEnded.push(path));
      },
    };
  }
  if (path === '/prefix/socket' && upgradable) {
    return {
      status: 101,
      headers: {},
      upgrade: {
        protocol: 'v5.channel.k8s.io',
        accept: (socket) => {
          socket.send('hello');
          socket.onMessage((data, binary) => {
            if (text(data) === 'bye') return socket.close(1000, 'done');
            socket.send(binary ? data : text(data).toUpperCase());
          });
        },
      },
    };
  }
  return { status: 403, headers: { 'content-type': 'application/json' }, body: bytes('{"kind":"Status","code":403}') };
};

let server: TlsServer;
let transport: HttpsTransport;
let ca: string;

before(async () => {
  const pair = await createAuthority(systemClock);
  const authority = await openAuthority(pair, systemClock);
  ca = authority.certificate;
  const tls = await authority.issue({ commonName: 'server', ipAddresses: ['127.0.0.1'], usage: 'server', days: 1 });
  const client = await authority.issue({ commonName: 'alice', usage: 'client', days: 1 });
  server = await startTlsServer({
    handler,
    host: '127.0.0.1',
    port: 0,
    tls: { ...tls, clientCa: ca },
    log: silentLogger,
  });
  transport = createHttpsTransport({
    server: `https://127.0.0.1:${server.port}/prefix/`,
    ca,
    certificate: client.certificate,
    key: client.key,
    token: async () => 'fresh',
  });
});

after(async () => {
  transport.close();
  await server.close();
});

// S-025: HTTP/1.1, HTTP/2 and WebSocket on one TLS port, with client certificates.
test('requests carry method, query, body, certificate and the newest token', async () => {
  const response = await transport(request('/echo', { method: 'POST', query: 'a=1', body: bytes('{"x":1}') }));
  assert.equal(response.status, 200);
  assert.equal(response.headers['content-type'], 'application/json');
  assert.deepEqual(JSON.parse(await collect(response)), {
    method: 'POST',
    query: 'a=1',
    body: '{"x":1}',
    authorization: 'Bearer fresh',
    mine: '',
    user: 'alice',
  });
});

test("a request's own credential is left alone, and connection headers are dropped", async () => {
  const headers = { authorization: 'Bearer own', connection: 'keep-alive', host: 'elsewhere', 'x-mine': 'yes' };
  const seen = JSON.parse(await collect(await transport(request('/echo', { headers })))) as Record<string, string>;
  assert.equal(seen['authorization'], 'Bearer own');
  assert.equal(seen['mine'], 'yes');
});

test('streams arrive in pieces and end', async () => {
  assert.equal(await collect(await transport(request('/watch/short'))), 'one\ntwo\n');
});

test('aborting a request ends the stream at both ends', async () => {
  const stop = new AbortController();
  const response = await transport(request('/watch/long', { signal: stop.signal }));
  const all = await collect(response, () => stop.abort());
  assert.equal(all, 'one\n');
  while (!watchesEnded.includes('/prefix/watch/long')) await new Promise((resolve) => setImmediate(resolve));
});

test('more watches than one session carries do not starve short requests', async () => {
  const stop = new AbortController();
  const watches = await Promise.all(
    Array.from({ length: 150 }, (_, i) => transport(request(`/watch/${i}`, { signal: stop.signal }))),
  );
  assert.equal(watches.length, 150);
  assert.equal((await transport(request('/echo'))).status, 200);
  stop.abort();
});

// S-025
test('an upgrade joins two message sockets and passes the sub-protocol on', async () => {
  const response = await transport(
    request('/socket', {
      upgradable: true,
      headers: { 'sec-websocket-protocol': 'v5.channel.k8s.io, v4.channel.k8s.io' },
    }),
  );
  assert.equal(response.status, 101);
  assert.equal(response.upgrade?.protocol, 'v5.channel.k8s.io');
  const [near, far] = createMessagePair('v5.channel.k8s.io');
  const received: string[] = [];
  const closed = new Promise<[number, string]>((resolve) => near.onClose((code, reason) => resolve([code, reason])));
  near.onMessage((data, binary) => {
    received.push(`${binary ? 'binary' : 'text'}:${text(data)}`);
    if (received.length === 1) near.send('loud');
    if (received.length === 2) near.send(bytes('raw'));
    if (received.length === 3) near.send('bye');
  });
  response.upgrade?.accept(far);
  assert.deepEqual(await closed, [1000, 'done']);
  assert.deepEqual(received, ['text:hello', 'text:LOUD', 'binary:raw']);
});

test('a server without TLS is refused unless that was said', () => {
  const server = 'http://127.0.0.1:1';
  assert.throws(() => createHttpsTransport({ server }), /must begin with https/);
  createHttpsTransport({ server, plain: true }).close();
});

test('a refused upgrade is an ordinary response', async () => {
  const response = await transport(request('/nothing', { upgradable: true }));
  assert.equal(response.status, 403);
  assert.equal(text(response.body as Uint8Array), '{"kind":"Status","code":403}');
});

test('a server that is not there is named in the error', async () => {
  const lost = createHttpsTransport({ server: 'https://127.0.0.1:1', ca });
  await assert.rejects(
    lost(request('/echo')),
    /Cannot send GET \/echo to https:\/\/127\.0\.0\.1:1: connect ECONNREFUSED/,
  );
  await assert.rejects(lost(request('/socket', { upgradable: true })), /ECONNREFUSED/);
  lost.close();
});

test('a certificate of another CA is refused', async () => {
  const other = await createAuthority(systemClock);
  const wary = createHttpsTransport({ server: `https://127.0.0.1:${server.port}`, ca: other.certificate });
  await assert.rejects(wary(request('/echo')), /certificate/);
  wary.close();
});

test('plain http is refused, and a closed transport says so', async () => {
  assert.throws(() => createHttpsTransport({ server: 'http://127.0.0.1:1' }), /must begin with https/);
  const done = createHttpsTransport({ server: 'https://127.0.0.1:1' });
  done.close();
  await assert.rejects(done(request('/echo')), /transport is closed/);
});
