/** A client that resets its connection has no address any more: it is dropped, and never taken for a caller of this process. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect as connectTcp } from 'node:net';
import { after, before, test } from 'node:test';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import type { CertificateAuthority } from '../../packages/apiserver/src/auth/certificate-authority.ts';
import { createClient } from '../../packages/client/src/create-client.ts';
import { createAgent } from '../../packages/node-agent/src/agent/agent.ts';
import { systemClock } from '../../packages/runtime/src/clock/clock.ts';
import { calledInProcess, inProcessPeer, isInProcess } from '../../packages/runtime/src/http/in-process-peer.ts';
import { type ApiHandler, type ApiRequest, NEVER, NO_BYTES, redirected } from '../../packages/runtime/src/http/seam.ts';
import type { TlsServer } from '../../packages/runtime/src/http/tls-server.ts';
import { silentLogger } from '../../packages/runtime/src/log/log.ts';
import { listenTls, newAuthority } from '../testkit/listen-tls.ts';

const seen: { readonly address: string; readonly status: number }[] = [];
let agent: ApiHandler;
let tls: TlsServer;
let authority: CertificateAuthority;
before(async () => {
  authority = await newAuthority();
  agent = createAgent({
    client: createClient(async () => ({ status: 503, headers: {} })),
    nodeName: 'n1',
    dataDir: '.',
    clock: systemClock,
    log: silentLogger,
  }).handler;
  tls = await listenTls(async (request) => {
    const answer = await agent(request);
    seen.push({ address: request.peer.address, status: answer.status });
    return answer;
  }, authority);
});
after(() => tls.close());

const HEAD = 'GET /metrics HTTP/1.1\r\nhost: n1\r\n';
const UPGRADE = 'connection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: a\r\n';
/** Preface, empty SETTINGS, HEADERS of stream 1: GET /metrics, https, as literals without an index. */
const HTTP2 = Buffer.concat([
  Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
  Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]),
  Buffer.from([0, 0, 12, 1, 5, 0, 0, 0, 1, 0x82, 0x87, 0x04, 8]),
  Buffer.from('/metrics'),
]);

/**
 * One try. Client and server share a thread: the end of the handshake, the request and the reset have all left when the
 * server reads the first of them; `late`: when it has read the handshake.
 */
async function resetAfter(bytes: string | Buffer, protocol: string, late: boolean): Promise<void> {
  const raw = connectTcp({ host: '127.0.0.1', port: tls.port });
  raw.on('error', () => {});
  const secured: TLSSocket = connectTls({
    socket: raw,
    host: '127.0.0.1',
    ca: authority.certificate,
    ALPNProtocols: [protocol],
  });
  secured.on('error', () => {});
  await once(secured, 'secureConnect');
  if (late) await systemClock.sleep(5, NEVER);
  secured.write(bytes, () => raw.resetAndDestroy());
  await systemClock.sleep(5, NEVER);
}

// S-455: A connection without an address is dropped; callers of the agent's process carry an identity that no socket
//   has.
for (const [what, bytes, protocol] of [
  ['an HTTP/1.1 request', `${HEAD}\r\n`, 'http/1.1'],
  ['an upgrade', `${HEAD}${UPGRADE}\r\n`, 'http/1.1'],
  ['an HTTP/2 request', HTTP2, 'h2'],
] as const)
  test(`reset behind ${what}: nobody is served without an address`, async () => {
    seen.length = 0;
    for (let i = 0; i < 20; i++) await resetAfter(bytes, protocol, i % 2 === 1);
    assert.deepEqual(
      seen.filter(({ address, status }) => address === '' || status !== 403),
      [],
    );
  });

// S-455
test('the agent believes the identity of a caller in its process, and nothing that looks like it', async () => {
  const request: ApiRequest = {
    method: 'GET',
    path: '/metrics',
    query: '',
    headers: {},
    body: NO_BYTES,
    peer: { address: '' },
    signal: NEVER,
  };
  const own = inProcessPeer();
  assert.equal(isInProcess(own), true);
  for (const peer of [{ address: '' }, { ...own }, structuredClone(own), Object.create(own), { address: '127.0.0.1' }])
    assert.equal((await agent(redirected(request, { peer }))).status, 403, JSON.stringify(peer));
  assert.equal((await agent(redirected(request, { peer: own }))).status, 200);
  assert.equal((await calledInProcess(agent)(request)).status, 200);
});
