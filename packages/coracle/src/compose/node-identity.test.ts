import assert from 'node:assert/strict';
import { test } from 'node:test';
import { listenTls, newAuthority } from '../../../../test/testkit/listen-tls.ts';
import { decodeBase64, encodeBase64 } from '../../../apimachinery/src/meta/base64.ts';
import { NODES } from '../../../apimachinery/src/types/resource-types.ts';
import { createClient } from '../../../client/src/create-client.ts';
import { createFakeClock } from '../../../runtime/src/clock/fake-clock.fixture.ts';
import { createHttpsTransport } from '../../../runtime/src/http/https-transport.ts';
import type { ApiResponse } from '../../../runtime/src/http/seam.ts';
import { silentLogger } from '../../../runtime/src/log/log.ts';
import type { KeyPairPem } from '../config/pki.ts';
import { connectNode } from './node-identity.ts';

const HOUR = 3_600_000;
const text = (value: string): Uint8Array => new TextEncoder().encode(value);
const reply = (status: number, body: unknown): ApiResponse => ({
  status,
  headers: { 'content-type': 'application/json' },
  body: text(JSON.stringify(body)),
});

// S-495
test('an agent renews its certificate before it ends, and at once when the server knows it no more', async (t) => {
  // Of today: certificates are checked by the time of the host.
  const clock = createFakeClock(Date.now());
  const authority = await newAuthority(clock);
  const refused = new Set<string>();
  const requests: string[] = [];
  const signed: string[] = [];
  const seen: string[] = [];
  const server = await listenTls(async (request) => {
    await request.receive?.('');
    const { method, path, body, headers, peer } = request;
    if (path === '/version') return reply(200, { gitVersion: 'v1.36.0+coracle' });
    const fingerprint = peer.certificate?.fingerprint ?? '';
    if (path.startsWith('/apis/certificates.k8s.io/')) {
      if (method === 'POST') {
        requests.push(headers['authorization'] ?? `certificate of ${peer.certificate?.commonName}`);
        if (headers['authorization'] === undefined && refused.has(fingerprint)) return reply(401, {});
        const object = JSON.parse(new TextDecoder().decode(body));
        const pem = new TextDecoder().decode(decodeBase64(object.spec.request));
        const { usages, expirationSeconds } = object.spec;
        signed.push(await authority.sign(pem, { usages, expirationSeconds }));
        return reply(201, { ...object, metadata: { name: `csr-${signed.length}` } });
      }
      if (method === 'PUT') return reply(200, JSON.parse(new TextDecoder().decode(body)));
      const at = Number(/csr-(\d+)$/.exec(path)?.[1]);
      return reply(200, {
        kind: 'CertificateSigningRequest',
        metadata: { name: `csr-${at}` },
        status: { certificate: encodeBase64(text(signed[at - 1]!)) },
      });
    }
    seen.push(fingerprint);
    return fingerprint === '' || refused.has(fingerprint) ? reply(401, {}) : reply(200, { metadata: { name: 'n' } });
  }, authority);
  t.after(() => server.close());
  const at = { server: `https://127.0.0.1:${server.port}`, ca: authority.certificate };
  const bootstrap = createHttpsTransport(at);
  t.after(() => bootstrap.close());
  const pairs = new Map<string, KeyPairPem>();
  const stop = new AbortController();
  const identity = await connectNode(
    { ...at, client: createClient(bootstrap, { token: 'bootstrap' }) },
    {
      nodeName: 'n',
      pairs: {
        read: (name: string) => pairs.get(name),
        write: (name: string, pair: KeyPairPem) => void pairs.set(name, pair),
      },
      clock,
      log: silentLogger,
      signal: stop.signal,
    },
  );
  t.after(() => identity.close());
  const ask = () => identity.client.get(NODES, { namespace: '', name: 'n' });
  await ask();
  assert.deepEqual(requests, ['Bearer bootstrap']);

  // As itself, when three tenths of the day are left; looked at in steps, so that a host that slept is not late.
  await clock.advance(16.5 * HOUR);
  assert.equal(requests.length, 1);
  await clock.advance(0.5 * HOUR);
  while (requests.length < 2 || pairs.get('node-n-client')?.certificate !== signed[1])
    await new Promise((wake) => setImmediate(wake));
  assert.deepEqual(requests, ['Bearer bootstrap', 'certificate of system:node:n']);
  await ask();
  assert.notEqual(seen.at(-1), seen[0]);

  // The server has forgotten it: by the kubeconfig, and whoever asked notices nothing.
  refused.add(seen.at(-1)!);
  await clock.advance(60_000);
  await Promise.all([ask(), ask()]);
  assert.deepEqual(requests.slice(2), ['Bearer bootstrap']);
  stop.abort();
});
