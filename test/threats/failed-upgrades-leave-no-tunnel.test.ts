/** Threat 12: a client that asked for an upgrade gets a tunnel to the server behind only when that server agreed. */
// test:full: waits a minute for what must end.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import { connect, createServer, type Server, type TLSSocket } from 'node:tls';
import { createAuthority, openAuthority } from '../../packages/apiserver/src/auth/certificate-authority.ts';
import { createOutbound, type Outbound } from '../../packages/coracle/src/compose/outbound.ts';
import { systemClock } from '../../packages/runtime/src/clock/clock.ts';
import { startTlsServer, type TlsServer } from '../../packages/runtime/src/http/tls-server.ts';
import { silentLogger } from '../../packages/runtime/src/log/log.ts';
import { eventually } from '../testkit/eventually.ts';
import { type InProcessServer, startServer } from '../testkit/in-process-server.ts';

const PATH = '/apis/behind.example.com/v1/tunnel';
let front: InProcessServer;
let tls: TlsServer;
let outbound: Outbound;
let behind: Server;
let ca: string;
/** What the server behind answers to an upgrade, and all it was sent. */
let answer = '';
let received = '';

before(async () => {
  const authority = await openAuthority(await createAuthority(systemClock), systemClock);
  ca = authority.certificate;
  const pair = await authority.issue({
    commonName: 'behind',
    dnsNames: ['behind.default.svc'],
    ipAddresses: ['127.0.0.1'],
    usage: 'server',
    days: 1,
  });
  behind = createServer({ cert: pair.certificate, key: pair.key }, (socket: TLSSocket) => {
    let head = '';
    let upgraded = false;
    socket.on('error', () => {});
    socket.on('data', (chunk) => {
      received += chunk.toString('latin1');
      head += chunk.toString('latin1');
      if (upgraded || !head.includes('\r\n\r\n')) return;
      upgraded = /^upgrade: /im.test(head);
      if (upgraded) socket.write(answer);
      else socket.end('HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}');
      head = '';
    });
  });
  behind.listen(0, '127.0.0.1');
  await once(behind, 'listening');
  const { port } = behind.address() as AddressInfo;

  front = await startServer({ connectOutbound: (target) => (request) => outbound.connect(target)(request) });
  outbound = createOutbound({ store: front.store });
  tls = await startTlsServer({
    handler: front.handler,
    host: '127.0.0.1',
    port: 0,
    tls: pair,
    log: silentLogger,
  });
  const service = { apiVersion: 'v1', kind: 'Service', metadata: { name: 'behind' }, spec: { ports: [{ port: 443 }] } };
  await front.create('/api/v1/namespaces/default/services', service);
  await front.create('/apis/discovery.k8s.io/v1/namespaces/default/endpointslices', {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: 'behind-1', labels: { 'kubernetes.io/service-name': 'behind' } },
    addressType: 'IPv4',
    endpoints: [{ addresses: ['127.0.0.1'] }],
    ports: [{ name: '', port, protocol: 'TCP' }],
  });
  const services = '/apis/apiregistration.k8s.io/v1/apiservices';
  await front.create(services, {
    apiVersion: 'apiregistration.k8s.io/v1',
    kind: 'APIService',
    metadata: { name: 'v1.behind.example.com' },
    spec: {
      group: 'behind.example.com',
      version: 'v1',
      service: { namespace: 'default', name: 'behind' },
      insecureSkipTLSVerify: true,
      groupPriorityMinimum: 2000,
      versionPriority: 200,
    },
  });
  const watch = await front.watch(`${services}?watch=1&fieldSelector=metadata.name=v1.behind.example.com`);
  for (;;) {
    const event = await watch.next();
    if (event?.object.status?.conditions?.[0]?.status === 'True') break;
  }
  watch.close();
});
after(async () => {
  outbound.close();
  await front.stop();
  await tls.close();
  behind.close();
});

const refusals: readonly (readonly [string, string])[] = [
  ['says 200', 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok'],
  ['says 200 and goes on', 'HTTP/1.1 200 OK\r\n\r\nok'],
  ['says 403', 'HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n'],
  ['says 101 without the key', 'HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n'],
  [
    'says 101 with a wrong key',
    'HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-accept: AAAA\r\n\r\n',
  ],
  ['talks nonsense', '\0\0\0nonsense\r\n\r\n'],
];

const WEBSOCKET =
  'GET {} HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n';
const SPDY = 'POST {} HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nContent-Length: 0\r\n\r\n';
const AGREED = 'HTTP/1.1 101 Switching Protocols\r\nupgrade: SPDY/3.1\r\nconnection: upgrade\r\n\r\n';

/** Asks for an upgrade over a connection of its own; resolves with the connection when something was answered. */
async function dial(request: string): Promise<{ readonly socket: TLSSocket; readonly reported: () => string }> {
  const socket = connect({ host: '127.0.0.1', port: tls.port, ca });
  socket.on('error', () => {});
  await once(socket, 'secureConnect');
  let reported = '';
  socket.on('data', (chunk) => {
    reported += chunk.toString('latin1');
  });
  socket.write(request.replace('{}', PATH));
  await eventually('an answer', () => reported !== '');
  return { socket, reported: () => reported };
}

const asked = [
  ['a WebSocket', WEBSOCKET, [['says 101 for SPDY', AGREED]]],
  ['SPDY', SPDY, [['says 101 for something else', AGREED.replace('SPDY/3.1', 'SPDY/2')]]],
] as const;
const cases = asked.flatMap(([kind, request, more]) =>
  [...refusals, ...more].map(([what, text]) => [`${what} when asked for ${kind}`, text, request] as const),
);

for (const [what, text, request] of cases) {
  // S-218: A client that asked for an upgrade gets a tunnel to the server behind only when that server agreed.
  test(`the server behind ${what}: not one byte of the client reaches it after`, async () => {
    answer = text;
    received = '';
    const { socket, reported } = await dial(request);
    assert.doesNotMatch(reported(), /^HTTP\/1\.1 101/);
    socket.write('GET /secret HTTP/1.1\r\nHost: a\r\n\r\n');
    socket.write(new Uint8Array([0x81, 0x86, 0, 0, 0, 0, ...Buffer.from('SECRET')]));
    await new Promise((done) => setTimeout(done, 100));
    socket.destroy();
    assert.ok(received.includes(PATH), 'the request itself was passed on');
    assert.doesNotMatch(received, /secret/i);
  });
}

// S-225: A SPDY upgrade reaches an aggregated server, once that server has agreed.
// Compat Aggregation, P1, yes: SPDY upgrades too
test('asked for SPDY, the server behind agrees: then the bytes of both pass, and nothing else does', async () => {
  answer = `${AGREED}hello`;
  received = '';
  const { socket, reported } = await dial(
    SPDY.replace('\r\n\r\n', '\r\nAuthorization: Bearer mine\r\nX-Remote-User: admin\r\n\r\n'),
  );
  assert.match(reported(), /^HTTP\/1\.1 101 [\s\S]*\r\nUpgrade: SPDY\/3\.1\r\n[\s\S]*\r\n\r\n/);
  socket.write('bytes of the client');
  await eventually('both ways', () => received.includes('of the client') && reported().endsWith('hello'));
  socket.destroy();
  assert.ok(reported().endsWith('\r\n\r\nhello'));
  assert.ok(received.endsWith('\r\n\r\nbytes of the client'));
  assert.doesNotMatch(received, /mine|x-remote-user: admin/i);
  assert.match(received, /x-remote-user: tester/);
});
