/** `coracle node` becomes a node: it asks for a certificate, is that node by it, and asks again in time. */
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { after, before, test } from 'node:test';
import type { CertificateAuthority } from '../../packages/apiserver/src/auth/certificate-authority.ts';
import { createClient } from '../../packages/client/src/create-client.ts';
import { connectNode } from '../../packages/coracle/src/compose/node-identity.ts';
import type { KeyPairPem } from '../../packages/coracle/src/config/pki.ts';
import { createFakeClock } from '../../packages/runtime/src/clock/fake-clock.fixture.ts';
import { createHttpsTransport } from '../../packages/runtime/src/http/https-transport.ts';
import type { TlsServer } from '../../packages/runtime/src/http/tls-server.ts';
import { silentLogger } from '../../packages/runtime/src/log/log.ts';
import { startPlane, type TestPlane } from '../testkit/control-plane.ts';
import { listenTls, newAuthority } from '../testkit/listen-tls.ts';

const clock = createFakeClock(Date.now());
let plane: TestPlane;
let server: TlsServer;
let authority: CertificateAuthority;
before(async () => {
  authority = await newAuthority(clock);
  plane = await startPlane({ clock });
  await plane.run(['certificatesigningrequest-approving-controller', 'certificatesigningrequest-signing-controller'], {
    rootCa: '',
    keys: { sign: authority.sign, signToken: plane.plane.signLegacyToken },
  });
  server = await listenTls(plane.plane.handler, authority);
});
after(async () => {
  await server.close();
  await plane.stop();
});

/** Moves the clock until `pending` has settled. */
async function settling<T>(pending: Promise<T>): Promise<T> {
  let done = false;
  void pending
    .finally(() => {
      done = true;
    })
    .catch(() => {});
  while (!done) {
    await clock.advance(50);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  return pending;
}

// S-185: A node elsewhere has a certificate of its own: asked for once, kept for the next start, renewed by itself.
test('a node is asked for once, kept for the next start, and renewed by itself', async () => {
  const url = `https://127.0.0.1:${server.port}`;
  const admin = await authority.issue({ commonName: 'a', organizations: ['system:masters'], usage: 'client', days: 1 });
  const transport = createHttpsTransport({ server: url, ca: authority.certificate, ...admin });
  const cluster = { server: url, ca: authority.certificate, client: createClient(transport) };
  const disk = new Map<string, KeyPairPem>();
  const written: KeyPairPem[] = [];
  const stop = new AbortController();
  const options = {
    nodeName: 'edge-1',
    pairs: {
      read: (name: string) => disk.get(name),
      write: (name: string, pair: KeyPairPem) => {
        disk.set(name, pair);
        written.push(pair);
      },
    },
    clock,
    log: silentLogger,
    signal: stop.signal,
  };
  const first = await settling(connectNode(cluster, options));
  const review = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' };
  const whoAmI = async (client: typeof first.client) =>
    (
      (await client.raw('POST', '/apis/authentication.k8s.io/v1/selfsubjectreviews', { body: review })) as {
        status: { userInfo: { username: string; groups: string[] } };
      }
    ).status.userInfo;
  const { username, groups } = await settling(whoAmI(first.client));
  assert.deepEqual([username, groups], ['system:node:edge-1', ['system:nodes', 'system:authenticated']]);
  const [pair] = written;
  const life = Date.parse(new X509Certificate(pair!.certificate).validTo) - clock.now();
  assert.ok(life > 0 && life <= 86_400_000);
  await first.close();

  const again = await settling(connectNode(cluster, options));
  assert.equal(written.length, 1, 'the certificate of the last start is good');
  await clock.advance(life * 0.71);
  for (let turn = 0; written.length < 2 && turn < 5000; turn++) {
    await clock.advance(50);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  assert.equal(written.length, 2);
  assert.notEqual(written[1]!.key, pair!.key);
  const { items } = await plane.admin('GET /apis/certificates.k8s.io/v1/certificatesigningrequests');
  const askers = items.map(({ spec }: { spec: { username: string } }) => spec.username).sort();
  assert.deepEqual(askers, ['a', 'system:node:edge-1']);
  await again.close();
  await transport.close();
  stop.abort();
});
