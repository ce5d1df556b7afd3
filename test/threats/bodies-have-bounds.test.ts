/** Threat 24: a body is held for nobody who may not send it, and all bodies in flight together have a bound. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type ClientHttp2Session, type ClientHttp2Stream, connect as connectHttp2 } from 'node:http2';
import { after, before, test } from 'node:test';
import { connect } from 'node:tls';
import type { CertificateAuthority } from '../../packages/apiserver/src/auth/certificate-authority.ts';
import type { TlsServer } from '../../packages/runtime/src/http/tls-server.ts';
import { startPlane, type TestPlane } from '../testkit/control-plane.ts';
import { listenTls, newAuthority } from '../testkit/listen-tls.ts';

const MIB = 1024 * 1024;
const CONFIG_MAPS = '/api/v1/namespaces/default/configmaps';

let plane: TestPlane;
let tls: TlsServer;
let authority: CertificateAuthority;
const sessions: ClientHttp2Session[] = [];
before(async () => {
  authority = await newAuthority();
  plane = await startPlane({ clientCa: authority.certificate });
  tls = await listenTls(plane.plane.handler, authority, { bodyBytes: 8 * MIB });
});
after(async () => {
  for (const session of sessions) session.destroy();
  await tls.close();
  await plane.stop();
});

/** A connection of a user, or of nobody. */
async function session(user?: { readonly name: string; readonly groups: string[] }): Promise<ClientHttp2Session> {
  const pair =
    user && (await authority.issue({ commonName: user.name, organizations: user.groups, usage: 'client', days: 1 }));
  const made = connectHttp2(`https://127.0.0.1:${tls.port}`, {
    ca: authority.certificate,
    ...(pair && { cert: pair.certificate, key: pair.key }),
  });
  made.on('error', () => {});
  sessions.push(made);
  await once(made, 'connect');
  return made;
}

const ADMIN = ['system:masters'];

/** Begins a write whose body is promised, and not sent. */
function begin(over: ClientHttp2Session, bytes: number): ClientHttp2Stream {
  const stream = over.request({
    ':method': 'POST',
    ':path': CONFIG_MAPS,
    'content-type': 'application/json',
    'content-length': bytes,
  });
  stream.on('error', () => {});
  stream.resume();
  stream.write(' ');
  return stream;
}

const statusOf = async (stream: ClientHttp2Stream): Promise<[status: unknown, retry: unknown]> => {
  const [headers] = (await once(stream, 'response', { signal: AbortSignal.timeout(30_000) })) as [
    Record<string, unknown>,
  ];
  return [headers[':status'], headers['retry-after']];
};

/** What was begun or closed has reached the server, which says nothing of it: on a busy machine that takes a while. */
const arrived = (): Promise<void> => new Promise((done) => setTimeout(done, 500));

// S-475: A body is held for nobody who may not send it; all bodies in flight have one bound and everybody a part of it.
test('nobody is refused before a byte of the body counts, over HTTP/2 and HTTP/1.1', async () => {
  const over = await session();
  const streams = Array.from({ length: 50 }, () => begin(over, 3 * MIB));
  for (const stream of streams) assert.deepEqual(await statusOf(stream), [403, undefined]);
  const socket = connect({ host: '127.0.0.1', port: tls.port, ca: authority.certificate });
  socket.on('error', () => {});
  await once(socket, 'secureConnect');
  socket.write(`POST ${CONFIG_MAPS} HTTP/1.1\r\nHost: a\r\nContent-Length: ${3 * MIB}\r\n\r\n{`);
  const [answer] = (await once(socket, 'data', { signal: AbortSignal.timeout(30_000) })) as [Buffer];
  assert.match(answer.toString(), /^HTTP\/1.1 403 /);
  socket.destroy();
});

test('who may not write is refused likewise, whoever it is', async () => {
  const over = await session({ name: 'reader', groups: [] });
  assert.deepEqual(await statusOf(begin(over, 3 * MIB)), [403, undefined]);
});

// S-475
test('one user’s bodies take half of the room; another’s are still taken', async () => {
  const greedy = await session({ name: 'greedy', groups: ADMIN });
  const held = [begin(greedy, 2 * MIB), begin(greedy, 2 * MIB)];
  await arrived();
  assert.deepEqual(await statusOf(begin(greedy, 2 * MIB + 1)), [429, '1']);
  const other = await session({ name: 'other', groups: ADMIN });
  const body = JSON.stringify({ metadata: { name: 'small' }, data: { text: 'x'.repeat(MIB) } });
  const stream = other.request({ ':method': 'POST', ':path': CONFIG_MAPS, 'content-type': 'application/json' });
  stream.resume();
  stream.end(body);
  assert.deepEqual(await statusOf(stream), [201, undefined]);
  await arrived();
  // Three megabytes are more than what is left then, whoever asks.
  const third = await session({ name: 'third', groups: ADMIN });
  const more = [begin(other, 2 * MIB)];
  await arrived();
  assert.deepEqual(await statusOf(begin(third, 3 * MIB)), [503, '1']);
  for (const one of [...held, ...more]) one.close();
  await arrived();
  const again = greedy.request({ ':method': 'POST', ':path': CONFIG_MAPS, 'content-type': 'application/json' });
  again.resume();
  again.end(body.replace('small', 'again'));
  assert.deepEqual(await statusOf(again), [201, undefined]);
});
