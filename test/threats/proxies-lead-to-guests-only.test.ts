/**
 * Threat 12 and 19: whoever may proxy to Pods reaches guests that agents run, and nothing else of the host or network:
 * no address that an object claims, no path of the node, and no other client's connection.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Server as TcpServer } from 'node:net';
import { after, before, test } from 'node:test';
import { connect, type TLSSocket } from 'node:tls';
import type { CertificateAuthority } from '../../packages/apiserver/src/auth/certificate-authority.ts';
import type { TlsServer } from '../../packages/runtime/src/http/tls-server.ts';
import { eventually } from '../testkit/eventually.ts';
import { createGuestPod, type GuestNode, startGuestNode } from '../testkit/guest-node.ts';
import { type InProcessServer, startServer } from '../testkit/in-process-server.ts';
import { listenTls, newAuthority } from '../testkit/listen-tls.ts';

const API = '/api/v1/namespaces';
const PODS = `${API}/default/pods`;

let canary: Server;
let guest: TcpServer;
let node: GuestNode;
let server: InProcessServer;
let authority: CertificateAuthority;
let tls: TlsServer;
/** Requests that reached what nobody may reach. */
let reached: string[] = [];
/** What the guest answers, to the byte, before it hangs up. */
let answer = 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nguest';
let heard = '';
let canaryPort = 0;

before(async () => {
  canary = createServer((request, response) => {
    reached.push(`${request.method} ${request.url}`);
    response.end('canary');
  });
  guest = createTcpServer((socket) => {
    socket.on('error', () => {});
    socket.on('data', (chunk) => {
      heard += chunk.toString('latin1');
      if (heard.includes('\r\n\r\n')) socket.end(answer);
    });
  });
  for (const one of [canary, guest]) {
    one.listen(0, '127.0.0.1');
    await once(one, 'listening');
  }
  canaryPort = (canary.address() as AddressInfo).port;
  node = await startGuestNode();
  node.run('default/web', { 80: (guest.address() as AddressInfo).port });
  node.run('other/web', { 80: canaryPort });
  server = await startServer({ connectNode: node.connectNode });
  await server.create('/api/v1/namespaces', {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: 'other' },
  });
  await createGuestPod(server, 'web');
  await createGuestPod(server, 'web', { namespace: 'other', ip: '127.64.0.2' });
  authority = await newAuthority();
  tls = await listenTls(server.handler, authority);
});
after(async () => {
  await tls.close();
  await server.stop();
  await node.close();
  canary.closeAllConnections();
  canary.close();
  guest.close();
});

async function dial(): Promise<{ socket: TLSSocket; text: () => string; until(pattern: RegExp): Promise<boolean> }> {
  const socket = connect({ host: '127.0.0.1', port: tls.port, ca: authority.certificate, ALPNProtocols: ['http/1.1'] });
  let text = '';
  let over = false;
  socket.on('error', () => {});
  socket.on('data', (chunk) => {
    text += chunk.toString('latin1');
  });
  socket.on('close', () => {
    over = true;
  });
  await once(socket, 'secureConnect');
  return {
    socket,
    text: () => text,
    async until(pattern) {
      await eventually(String(pattern), () => pattern.test(text) || over);
      return pattern.test(text);
    },
  };
}

/** Sends one request as it stands; resolves with the answer's status and all its text. */
async function sendRaw(head: string): Promise<{ readonly status: number; readonly text: string }> {
  reached = [];
  heard = '';
  const wire = await dial();
  wire.socket.write(`${head}\r\nConnection: close\r\n\r\n`);
  await wire.until(/(?!)/);
  wire.socket.destroy();
  return { status: Number(wire.text().split(' ')[1]), text: wire.text() };
}

const get = (path: string, ...fields: string[]) =>
  sendRaw(
    [`GET ${path} HTTP/1.1`, ...(fields.some((one) => /^host:/i.test(one)) ? [] : ['Host: a']), ...fields].join('\r\n'),
  );

// S-223: A proxy leads to guests and nowhere else.
test('an address that a Pod claims is never dialled', async () => {
  let number = 0;
  for (const ip of ['127.0.0.1', '169.254.169.254', '10.0.0.1', '0.0.0.0', '::1', 'localhost']) {
    const name = `liar-${number++}`;
    await createGuestPod(server, name, { ip, ports: [canaryPort] });
    for (const id of [name, `${name}:${canaryPort}`, `http:${name}:${canaryPort}`]) {
      const { status, text } = await get(`${PODS}/${id}/proxy/`);
      assert.ok(status === 503 || status === 400, `${ip} ${id}: ${text}`);
    }
    assert.deepEqual(reached, []);
  }
});

// S-223
test('a Service leads to Pods of its own namespace alone, at the address they have', async () => {
  await server.create(`${API}/default/services`, {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'trick' },
    spec: { ports: [{ port: canaryPort }] },
  });
  const pod = { kind: 'Pod', namespace: 'default', name: 'web' };
  const endpoints = [
    { addresses: ['127.0.0.1'] },
    { addresses: ['127.0.0.1'], targetRef: pod },
    { addresses: ['192.0.2.254'], targetRef: { ...pod, name: 'nobody' } },
    { addresses: ['127.64.0.1'], targetRef: { ...pod, kind: 'Node', name: 'n1' } },
    { addresses: ['127.64.0.2'], targetRef: { ...pod, namespace: 'other' } },
  ];
  for (const [i, endpoint] of endpoints.entries()) {
    await server.create('/apis/discovery.k8s.io/v1/namespaces/default/endpointslices', {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { name: `trick-${i}`, labels: { 'kubernetes.io/service-name': 'trick' } },
      addressType: 'IPv4',
      endpoints: [endpoint],
      ports: [{ name: '', port: canaryPort, protocol: 'TCP' }],
    });
    const before = node.seen.length;
    const { status } = await get(`${API}/default/services/trick:${canaryPort}/proxy/`);
    assert.deepEqual([status, reached, node.seen.length], [503, [], before], JSON.stringify(endpoint));
  }
  await server.create(`${API}/default/services`, {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'outside' },
    spec: { type: 'ExternalName', externalName: 'localhost', ports: [{ port: canaryPort }] },
  });
  assert.equal((await get(`${API}/default/services/outside:${canaryPort}/proxy/`)).status, 503);
  assert.deepEqual(reached, []);
});

// S-223
test('nothing in the id, the path or a header leads to another Pod, another path of the node, or another host', async () => {
  const upgrade = [
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
  ];
  const spdy = ['Connection: Upgrade', 'Upgrade: SPDY/3.1'];
  const elsewhere = 'podProxy/other/web/http/80';
  const paths = [
    `web:80/proxy/../../../../../${elsewhere}`,
    `web:80/proxy/%2e%2e/%2e%2e/%2E%2E/%2e./${elsewhere}`,
    `web:80/proxy/..\\..\\..\\..\\${elsewhere}`,
    `web:80/proxy//${elsewhere}`,
    `web:80/proxy/@127.0.0.1:${canaryPort}/`,
    `web:80/proxy//127.0.0.1:${canaryPort}/`,
    `web:80/proxy/http://127.0.0.1:${canaryPort}/`,
    `web:80%2F..%2F..%2F${encodeURIComponent(elsewhere)}/proxy/`,
    `web:80@127.0.0.1:${canaryPort}/proxy/`,
    `http:web@127.0.0.1:${canaryPort}/proxy/`,
    `..%2F..%2Fother%2Fpods%2Fweb:80/proxy/`,
    `../../other/pods/web:80/proxy/`,
  ];
  const fields = [
    `Coracle-Proxy-Path: http://127.0.0.1:${canaryPort}/`,
    `X-Forwarded-Host: 127.0.0.1:${canaryPort}`,
    `Host: 127.0.0.1:${canaryPort}`,
  ];
  for (const path of paths) {
    for (const more of [[], upgrade, spdy, fields]) {
      const before = node.seen.length;
      await get(`${PODS}/${path}`, ...more);
      assert.deepEqual(reached, [], `${path} ${more}`);
      for (const request of node.seen.slice(before))
        assert.match(request.path, /^\/podProxy\/default\/web\/http\/80$/, `${path} ${more}`);
    }
  }
  assert.ok(node.seen.length > 0, 'some of them are pages of the guest`s');
});

// S-222
test('an answer that is shorter than it says ends its connection, so that no other answer is taken for its rest', async () => {
  answer = 'HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nshort';
  heard = '';
  const wire = await dial();
  wire.socket.write(`GET ${PODS}/web:80/proxy/ HTTP/1.1\r\nHost: a\r\n\r\n`);
  wire.socket.write(`GET ${PODS}/nobody HTTP/1.1\r\nHost: a\r\n\r\n`);
  await once(wire.socket, 'close');
  assert.match(wire.text(), /^HTTP\/1\.1 200 /);
  assert.doesNotMatch(wire.text(), /content-length: 1000/i);
  assert.doesNotMatch(wire.text(), /\r\n0\r\n\r\n/, 'it is not shown as whole');
  assert.equal(wire.text().match(/HTTP\/1\.1 /g)!.length, 1);
});

test('a guest that talks nonsense is a 503, and one that never answers is left when the client leaves', async () => {
  for (const text of ['nonsense\r\n\r\n', 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n', '']) {
    answer = text;
    assert.equal((await get(`${PODS}/web:80/proxy/`)).status, 503, JSON.stringify(text));
  }
  const silent = createTcpServer();
  silent.listen(0, '127.0.0.1');
  await once(silent, 'listening');
  node.run('default/web', { 80: (silent.address() as AddressInfo).port });
  const wire = await dial();
  const connected = once(silent, 'connection');
  wire.socket.write(`GET ${PODS}/web:80/proxy/ HTTP/1.1\r\nHost: a\r\n\r\n`);
  const [line] = await connected;
  line.resume();
  const gone = once(line, 'close');
  wire.socket.destroy();
  await gone;
  silent.close();
});

// S-223
test('forwarded ports and proxies take a right of their own each', async () => {
  const careful = await startServer({
    connectNode: node.connectNode,
    authorize: (_user, attributes) => ({
      allowed: 'subresource' in attributes && attributes.subresource === '' && attributes.verb === 'get',
      reason: '',
    }),
  });
  for (const path of ['pods/web/proxy/', 'pods/web:80/proxy/', 'services/web/proxy/', 'pods/web/portforward'])
    for (const method of ['GET', 'POST', 'OPTIONS']) {
      const before = node.seen.length;
      assert.equal((await careful.request(method, `${API}/default/${path}`)).status, 403, `${method} ${path}`);
      assert.equal(node.seen.length, before);
    }
  await careful.stop();
});
