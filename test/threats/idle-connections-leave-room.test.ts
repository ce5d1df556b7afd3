/** Threat 24: connections that bring no credential, and one user's thousands, keep nobody out. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, before, test } from 'node:test';
import { connect, type TLSSocket } from 'node:tls';
import type { CertificateAuthority } from '../../packages/apiserver/src/auth/certificate-authority.ts';
import { Connections } from '../../packages/runtime/src/http/connections.ts';
import type { TlsServer } from '../../packages/runtime/src/http/tls-server.ts';
import { startPlane, type TestPlane } from '../testkit/control-plane.ts';
import { listenTls, newAuthority } from '../testkit/listen-tls.ts';

let plane: TestPlane;
let tls: TlsServer;
let authority: CertificateAuthority;
const sockets: TLSSocket[] = [];
before(async () => {
  authority = await newAuthority();
  plane = await startPlane({ clientCa: authority.certificate });
  tls = await listenTls(plane.plane.handler, authority, {
    connections: { anonymous: 20, identified: 30, ofOwner: 10, handshakes: 10 },
  });
});
after(async () => {
  for (const socket of sockets) socket.destroy();
  await tls.close();
  await plane.stop();
});

async function open(user?: string): Promise<TLSSocket> {
  const pair =
    user && (await authority.issue({ commonName: user, organizations: ['system:masters'], usage: 'client', days: 1 }));
  const socket = connect({
    host: '127.0.0.1',
    port: tls.port,
    ca: authority.certificate,
    ...(pair && { cert: pair.certificate, key: pair.key }),
  });
  socket.on('error', () => {});
  socket.resume();
  sockets.push(socket);
  await once(socket, 'secureConnect');
  return socket;
}

async function ask(socket: TLSSocket): Promise<string> {
  socket.write('GET /api/v1/namespaces/default HTTP/1.1\r\nHost: a\r\n\r\n');
  const [answer] = (await once(socket, 'data', { signal: AbortSignal.timeout(5000) })) as [Buffer];
  return answer.toString().slice(0, 12);
}

const living = async (some: readonly TLSSocket[]): Promise<number> => {
  await new Promise((done) => setTimeout(done, 100));
  return some.filter((socket) => !socket.destroyed).length;
};

// S-476: Connections without a credential end after half a minute, and neither they nor one user's keep others out.
test('connections without a credential: the oldest go, and a user gets in and stays', async () => {
  const worker = await open('worker');
  assert.equal(await ask(worker), 'HTTP/1.1 200');
  const idle: TLSSocket[] = [];
  for (let i = 0; i < 60; i++) idle.push(await open());
  assert.equal(await living(idle), 20);
  assert.equal(idle.at(-1)!.destroyed, false);
  assert.equal(await ask(worker), 'HTTP/1.1 200');
  assert.equal(await ask(await open('late')), 'HTTP/1.1 200');
});

// S-476
test('connections of one user: beyond a part the oldest idle one goes, others stay', async () => {
  const worker = await open('steady');
  const many: TLSSocket[] = [];
  for (let i = 0; i < 25; i++) many.push(await open('greedy'));
  assert.equal(await living(many), 10);
  assert.equal(await ask(worker), 'HTTP/1.1 200');
});

test('handshakes that are never finished: the oldest are given up', async () => {
  const { connect: plain } = await import('node:net');
  const half = Array.from({ length: 40 }, () => plain({ host: '127.0.0.1', port: tls.port }).on('error', () => {}));
  await Promise.all(half.map((socket) => once(socket, 'connect')));
  assert.equal(await ask(await open('in-spite-of-them')), 'HTTP/1.1 200');
  await new Promise((done) => setTimeout(done, 100));
  assert.ok(half.filter(({ destroyed, readable }) => !destroyed && readable).length <= 10);
  for (const socket of half) socket.destroy();
});

// S-476
test('half a minute without a credential ends a connection, one that is asked on it half a minute later', () => {
  const connections = new Connections();
  const ended: string[] = [];
  const made = (name: string) => {
    const socket = { remoteAddress: '192.0.2.1', remotePort: 1, on: () => socket } as never;
    return connections.established(socket, {
      close: () => ended.push(`${name} closed`),
      destroy: () => ended.push(`${name} cut`),
    });
  };
  made('idle');
  made('busy').begin();
  made('user').identify('somebody');
  for (let i = 0; i < 6; i++) connections.sweep();
  assert.deepEqual(ended, ['idle closed', 'busy closed']);
  connections.sweep();
  assert.deepEqual(ended.slice(2), ['idle cut']);
  for (let i = 0; i < 12; i++) connections.sweep();
  assert.deepEqual(ended.slice(3), ['busy cut']);
});
