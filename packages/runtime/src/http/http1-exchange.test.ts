import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import { createAuthority, openAuthority } from '../../../apiserver/src/auth/certificate-authority.ts';
import { systemClock } from '../clock/clock.ts';
import { createHttpsTransport, type HttpsTransport } from './https-transport.ts';
import { type ApiRequest, type ApiResponse, NEVER, NO_BYTES } from './seam.ts';

let server: Server;
let transport: HttpsTransport;
let ca = '';
let port = 0;
let connections = 0;
const hosts: string[] = [];

before(async () => {
  const pair = await createAuthority(systemClock);
  ca = pair.certificate;
  const authority = await openAuthority(pair, systemClock);
  const own = await authority.issue({ commonName: 's', dnsNames: ['hook.ns.svc'], usage: 'server', days: 1 });
  server = createServer({ cert: own.certificate, key: own.key }, (request, response) => {
    hosts.push(request.headers.host ?? '');
    if (request.url === '/hangs') return;
    if (request.url === '/parts') {
      response.write('one ');
      setImmediate(() => response.end('two'));
      return;
    }
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => response.writeHead(201, { 'x-method': request.method }).end(Buffer.concat(parts)));
  });
  server.on('secureConnection', () => connections++);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  ({ port } = server.address() as AddressInfo);
  transport = createHttpsTransport({ server: `https://127.0.0.1:${port}`, ca, serverName: 'hook.ns.svc', http1: true });
});

after(() => {
  transport.close();
  server.closeAllConnections();
  server.close();
});

const request = (path: string, more: Partial<ApiRequest> = {}): ApiRequest => ({
  method: 'POST',
  path,
  query: '',
  headers: {},
  body: NO_BYTES,
  peer: { address: '' },
  signal: NEVER,
  ...more,
});

/** The whole body of a streamed answer. */
const bodyOf = ({ body }: ApiResponse): Promise<string> =>
  new Promise((resolve) => {
    let text = '';
    assert.ok(typeof body === 'function');
    body({
      buffered: 0,
      signal: NEVER,
      drained: () => Promise.resolve(),
      write: (chunk) => {
        text += new TextDecoder().decode(chunk);
        return true;
      },
      end: () => resolve(text),
    });
  });

test('requests share a connection, and the certificate is checked against the given name', async () => {
  const first = await transport(request('/echo', { body: new TextEncoder().encode('hello') }));
  assert.deepEqual([first.status, first.headers['x-method'], await bodyOf(first)], [201, 'POST', 'hello']);
  assert.equal(await bodyOf(await transport(request('/parts'))), 'one two');
  assert.equal(connections, 1);
  assert.deepEqual(new Set(hosts), new Set(['hook.ns.svc']));
  const misnamed = createHttpsTransport({
    server: `https://127.0.0.1:${port}`,
    ca,
    serverName: 'x.ns.svc',
    http1: true,
  });
  await assert.rejects(misnamed(request('/echo')), /Hostname\/IP does not match/);
  misnamed.close();
});

test('a request that is given up ends with the reason of its signal', async () => {
  const stop = new AbortController();
  const pending = transport(request('/hangs', { signal: stop.signal }));
  stop.abort(new Error('enough'));
  await assert.rejects(pending, /enough/);
});

test('nobody there: the socket’s own words', async () => {
  const nobody = createHttpsTransport({ server: 'https://127.0.0.1:1', http1: true });
  await assert.rejects(nobody(request('/x')), /Cannot send POST \/x to https:\/\/127\.0\.0\.1:1: .*ECONNREFUSED/);
  nobody.close();
});
