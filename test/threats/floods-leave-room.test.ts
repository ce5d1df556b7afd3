/** Threat 24: idle connections, headers that never end and streams that are reset at once leave room for whoever works. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect as connectHttp2, constants } from 'node:http2';
import { after, before, test } from 'node:test';
import { connect, type TLSSocket } from 'node:tls';
import type { CertificateAuthority } from '../../packages/apiserver/src/auth/certificate-authority.ts';
import { createHttpsTransport } from '../../packages/runtime/src/http/https-transport.ts';
import { NEVER, NO_BYTES } from '../../packages/runtime/src/http/seam.ts';
import type { TlsServer } from '../../packages/runtime/src/http/tls-server.ts';
import { startPlane, type TestPlane } from '../testkit/control-plane.ts';
import { listenTls, newAuthority } from '../testkit/listen-tls.ts';

let plane: TestPlane;
let tls: TlsServer;
let authority: CertificateAuthority;
before(async () => {
  authority = await newAuthority();
  plane = await startPlane({ clientCa: authority.certificate });
  tls = await listenTls(plane.plane.handler, authority);
});
after(async () => {
  await tls.close(100);
  await plane.stop();
});

/** Somebody with a certificate asks 20 times; all are answered. */
async function work(): Promise<void> {
  const pair = await authority.issue({
    commonName: 'admin',
    organizations: ['system:masters'],
    usage: 'client',
    days: 1,
  });
  const transport = createHttpsTransport({
    server: `https://127.0.0.1:${tls.port}`,
    ca: authority.certificate,
    ...pair,
  });
  for (let i = 0; i < 20; i++) {
    const { status } = await transport({
      method: 'GET',
      path: '/api/v1/namespaces/default',
      query: '',
      headers: {},
      body: NO_BYTES,
      peer: { address: '' },
      signal: NEVER,
    });
    assert.equal(status, 200);
  }
  await transport.close();
}

async function open(count: number): Promise<TLSSocket[]> {
  const sockets = Array.from({ length: count }, () => {
    const socket = connect({ host: '127.0.0.1', port: tls.port, ca: authority.certificate });
    socket.on('error', () => {});
    socket.resume();
    return socket;
  });
  await Promise.all(sockets.map((socket) => once(socket, 'secureConnect')));
  return sockets;
}

test('150 connections that say nothing, 50 whose headers trickle, 50 whose body never comes', {
  timeout: 600_000,
}, async () => {
  const sockets = await open(250);
  const drip = setInterval(() => {
    for (const socket of sockets.slice(150, 200)) if (socket.writable) socket.write('x-a: b\r\n');
  }, 20);
  for (const socket of sockets.slice(150, 200)) socket.write('GET /api HTTP/1.1\r\nHost: a\r\n');
  for (const socket of sockets.slice(200))
    socket.write('POST /api/v1/namespaces HTTP/1.1\r\nHost: a\r\nContent-Length: 3000000\r\n\r\n{');
  await work();
  clearInterval(drip);
  for (const socket of sockets) socket.destroy();
  await work();
});

test('streams of HTTP/2 opened and reset, 5,000 of them', { timeout: 600_000 }, async () => {
  const session = connectHttp2(`https://127.0.0.1:${tls.port}`, { ca: authority.certificate });
  session.on('error', () => {});
  await once(session, 'connect');
  for (let i = 0; i < 5000 && !session.destroyed; i++) {
    const stream = session.request({ ':path': '/api/v1/namespaces?watch=1' });
    stream.on('error', () => {});
    stream.close(constants.NGHTTP2_CANCEL);
    if (i % 50 === 0) await new Promise((done) => setImmediate(done));
  }
  await work();
  session.destroy();
  await work();
});

test('a thousand handshakes that are given up half way', { timeout: 600_000 }, async () => {
  const { connect: plain } = await import('node:net');
  for (let round = 0; round < 10; round++) {
    const sockets = Array.from({ length: 100 }, () => {
      const socket = plain({ host: '127.0.0.1', port: tls.port });
      socket.on('error', () => {});
      socket.on('connect', () => socket.write(new Uint8Array([0x16, 3, 1, 2, 0, 1, 0, 1])));
      return socket;
    });
    await new Promise((done) => setTimeout(done, 20));
    for (const socket of sockets) socket.destroy();
  }
  await work();
});
