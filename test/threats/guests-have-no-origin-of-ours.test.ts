/**
 * Threat 11: a page that a guest serves through a proxy is of no origin of this server's, where its scripts would act with
 * the certificate of whoever looks at it; and a page of a foreign name cannot be taken for this server's.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { connect as connectHttp2 } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import { connect } from 'node:tls';
import type { CertificateAuthority } from '../../packages/apiserver/src/auth/certificate-authority.ts';
import type { TlsServer } from '../../packages/runtime/src/http/tls-server.ts';
import { createGuestPod, type GuestNode, startGuestNode } from '../testkit/guest-node.ts';
import { type InProcessServer, startServer } from '../testkit/in-process-server.ts';
import { listenTls, newAuthority } from '../testkit/listen-tls.ts';

const PROXY = '/api/v1/namespaces/default/pods/web/proxy';

let guest: Server;
let node: GuestNode;
let server: InProcessServer;
let authority: CertificateAuthority;
let tls: TlsServer;
before(async () => {
  guest = createServer((request, response) => {
    if (request.url === '/own')
      response.setHeader('content-security-policy', 'sandbox allow-same-origin allow-scripts');
    response.setHeader('x-content-type-options', 'sniff');
    response.setHeader('service-worker-allowed', '/');
    response.setHeader('clear-site-data', '"*"');
    response.setHeader('set-cookie', ['a=1; Path=/; Domain=localhost; HttpOnly', 'b=2']);
    response.setHeader('content-type', 'text/html');
    response.end('<script>fetch("/api/v1/secrets")</script>');
  }).listen(0, '127.0.0.1');
  await once(guest, 'listening');
  node = await startGuestNode();
  node.run('default/web', { 80: (guest.address() as AddressInfo).port });
  server = await startServer({ connectNode: node.connectNode, hostNames: ['kubernetes.default.svc', 'Host.example'] });
  await createGuestPod(server, 'web');
  authority = await newAuthority();
  tls = await listenTls(server.handler, authority);
});
after(async () => {
  await tls.close();
  await server.stop();
  await node.close();
  guest.closeAllConnections();
  guest.close();
});

async function get(path: string, host: string): Promise<string> {
  const socket = connect({ host: '127.0.0.1', port: tls.port, ca: authority.certificate });
  socket.on('error', () => {});
  let text = '';
  socket.on('data', (chunk) => {
    text += chunk;
  });
  await once(socket, 'secureConnect');
  socket.write(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
  await once(socket, 'close');
  return text;
}

const headerOf = (text: string, name: string): string | undefined =>
  new RegExp(`^${name}: (.*)\r$`, 'im').exec(text)?.[1];

// S-480: Pages behind a proxy are of an origin of their own, and their cookies are shown to their guest alone.
test('answers of a guest are sandboxed, are not sniffed, and say nothing for the origin', async () => {
  for (const path of ['/', '/own', '']) {
    const text = await get(`${PROXY}${path}`, '127.0.0.1');
    const policies = (headerOf(text, 'content-security-policy') ?? '').split(', ');
    const ours = policies.at(-1) ?? '';
    assert.match(ours, /^sandbox\b/, path);
    assert.doesNotMatch(ours, /allow-same-origin|allow-top-navigation|escape/, path);
    assert.equal(headerOf(text, 'x-content-type-options'), 'nosniff', path);
    for (const name of ['service-worker-allowed', 'clear-site-data']) assert.equal(headerOf(text, name), undefined);
  }
});

// S-480
test('a cookie of a guest is shown to that guest alone', async () => {
  const text = await get(`${PROXY}/`, '127.0.0.1');
  assert.match(text, new RegExp(`^set-cookie: a=1; HttpOnly; Path=${PROXY}\r$`, 'im'));
  assert.match(text, new RegExp(`^set-cookie: b=2; Path=${PROXY}\r$`, 'im'));
});

// S-481: A request for a host that the API server is not is answered with 421.
test('a name that is not this server’s is misdirected, whatever is asked', async () => {
  for (const path of ['/version', `${PROXY}/`, '/api/v1/namespaces']) {
    for (const host of [
      'attacker.example',
      'attacker.example:6443',
      'localhost.attacker.example',
      '127.0.0.1.nip.io',
      'a@localhost',
    ])
      assert.match(await get(path, host), /^HTTP\/1.1 421 /, host);
  }
});

// S-481
test('its addresses, localhost and the names of its certificate are its own, in any spelling and with any port', async () => {
  for (const host of [
    '127.0.0.1',
    `127.0.0.1:${tls.port}`,
    '[::1]:6443',
    'localhost',
    'LOCALHOST:1',
    'vm.localhost',
    'kubernetes.default.svc:443',
    'KUBERNETES.default.svc.',
    'host.EXAMPLE',
  ])
    assert.match(await get('/version', host), /^HTTP\/1.1 200 /, host);
});

// S-481
test('HTTP/2 names the host in :authority', async () => {
  const session = connectHttp2(`https://127.0.0.1:${tls.port}`, { ca: authority.certificate });
  const ask = async (name: string): Promise<unknown> => {
    const stream = session.request({ ':path': '/version', ':authority': name });
    stream.resume();
    const [headers] = (await once(stream, 'response')) as [Record<string, unknown>];
    return headers[':status'];
  };
  assert.equal(await ask('attacker.example'), 421);
  assert.equal(await ask(`localhost:${tls.port}`), 200);
  session.destroy();
});

// S-482: Request lines of HTTP/0.9 and HTTP/2.0 on a connection of HTTP/1 are refused.
test('request lines of versions that this connection does not speak are refused', async () => {
  for (const line of ['GET /version HTTP/2.0', 'GET /version HTTP/0.9', 'GET /version']) {
    const socket = connect({ host: '127.0.0.1', port: tls.port, ca: authority.certificate });
    socket.on('error', () => {});
    let text = '';
    socket.on('data', (chunk) => {
      text += chunk;
    });
    await once(socket, 'secureConnect');
    socket.write(`${line}\r\nHost: 127.0.0.1\r\n\r\n`);
    await once(socket, 'close', { signal: AbortSignal.timeout(5000) });
    assert.match(text, /^HTTP\/1.1 (?:505|400) /, `${line}: ${text.slice(0, 60)}`);
  }
});
