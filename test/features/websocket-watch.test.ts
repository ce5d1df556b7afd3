/** Watches over WebSockets, on a real port: what a page in a browser does. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { WebSocket } from 'ws';
import { encodeBase64Url } from '../../packages/apimachinery/src/meta/base64.ts';
import { unauthorized } from '../../packages/apimachinery/src/meta/status.ts';
import { bearerToken } from '../../packages/apiserver/src/auth/authenticator.ts';
import { createAuthority, openAuthority } from '../../packages/apiserver/src/auth/certificate-authority.ts';
import { systemClock } from '../../packages/runtime/src/clock/clock.ts';
import { startTlsServer, type TlsServer } from '../../packages/runtime/src/http/tls-server.ts';
import { silentLogger } from '../../packages/runtime/src/log/log.ts';
import { type InProcessServer, startServer } from '../testkit/in-process-server.ts';

let server: InProcessServer;
let tls: TlsServer;
let ca: string;
const PATH = '/api/v1/namespaces/default/configmaps';
const bearer = `base64url.bearer.authorization.k8s.io.${encodeBase64Url(new TextEncoder().encode('let-me-in'))}`;

before(async () => {
  server = await startServer({
    authenticate: async (request) => {
      if (request.upgradable && bearerToken(request) !== 'let-me-in') throw unauthorized();
      return { username: 'page', groups: ['system:masters', 'system:authenticated'] };
    },
  });
  const authority = await openAuthority(await createAuthority(systemClock), systemClock);
  ca = authority.certificate;
  const serving = await authority.issue({ commonName: 'x', ipAddresses: ['127.0.0.1'], usage: 'server', days: 1 });
  tls = await startTlsServer({ handler: server.handler, host: '127.0.0.1', port: 0, tls: serving, log: silentLogger });
});
after(async () => {
  await tls.close();
  await server.stop();
});

interface Message {
  readonly text: string;
  readonly binary: boolean;
}

/** An open watch whose messages are taken one by one. */
async function open(pathAndQuery: string, protocols: string[], headers: Record<string, string> = {}) {
  const socket = new WebSocket(`wss://127.0.0.1:${tls.port}${pathAndQuery}`, protocols, { ca, headers });
  const arrived: Message[] = [];
  let wake = (): void => {};
  socket.on('message', (data: Buffer, binary) => {
    arrived.push({ text: data.toString(), binary });
    wake();
  });
  const closed = new Promise<number>((resolve) => socket.on('close', (code) => resolve(code)));
  await new Promise((resolve, reject) => {
    socket.on('open', resolve);
    socket.on('error', reject);
  });
  return {
    socket,
    closed,
    async next(): Promise<Message> {
      while (arrived.length === 0) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
      return arrived.shift()!;
    },
  };
}

const make = (name: string) =>
  server.create(PATH, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'default' } });

// S-163: A watch can be a WebSocket: each event is one message.
// Compat Watch, P2, yes: WebSocket: one message for each event, token as a sub-protocol
test('each event is one text message', async () => {
  await make('a');
  await make('b');
  const watch = await open(`${PATH}?watch=1`, [bearer, 'base64.binary.k8s.io']);
  assert.equal(watch.socket.protocol, 'base64.binary.k8s.io', 'the protocol that is no token');
  const events: string[] = [];
  for (let i = 0; i < 2; i++) {
    const { text, binary } = await watch.next();
    assert.equal(binary, false);
    const event = JSON.parse(text);
    events.push(`${event.type} ${event.object.metadata.name}`);
  }
  assert.deepEqual(events, ['ADDED a', 'ADDED b']);
  await server.request('DELETE', `${PATH}/a`);
  const last = JSON.parse((await watch.next()).text);
  assert.deepEqual([last.type, last.object.metadata.name], ['DELETED', 'a']);
  watch.socket.close();
  await watch.closed;
});

// S-163
test('protobuf events are binary messages', async () => {
  const watch = await open(`${PATH}?watch=1&fieldSelector=metadata.name=b`, [bearer, 'x'], {
    accept: 'application/vnd.kubernetes.protobuf;stream=watch,application/vnd.kubernetes.protobuf',
  });
  const { text, binary } = await watch.next();
  assert.equal(binary, true);
  assert.match(text, /ADDED/);
  assert.match(text, /k8s\0/);
  watch.socket.close();
});

test('the watch ends with its time, and the socket with it', async () => {
  const watch = await open(`${PATH}?watch=1&timeoutSeconds=1&resourceVersion=${server.store.revision()}`, [
    bearer,
    'x',
  ]);
  assert.equal(await watch.closed, 1000);
});

// Compat Authentication and impersonation, P1, yes: WebSocket bearer sub-protocol, beside another one
test('a socket without a token, or with a token alone, is refused before it opens', async () => {
  for (const protocols of [['x'], [bearer]]) {
    await assert.rejects(open(`${PATH}?watch=1`, protocols), /401/);
  }
});
