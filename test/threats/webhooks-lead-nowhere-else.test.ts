/** Threat 19: a webhook that answers with a redirect is not followed, and what it says is not shown to the asker. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import { createAuthority, openAuthority } from '../../packages/apiserver/src/auth/certificate-authority.ts';
import type { ObjectStore } from '../../packages/apiserver/src/cache/object-store.ts';
import { createOutbound } from '../../packages/coracle/src/compose/outbound.ts';
import { systemClock } from '../../packages/runtime/src/clock/clock.ts';
import { type InProcessServer, startServer } from '../testkit/in-process-server.ts';

const HOOKS = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations';
let server: InProcessServer;
let hook: Server;
let outbound: ReturnType<typeof createOutbound>;
let caBundle = '';
let port = 0;
let status = 301;
const reached: string[] = [];

before(async () => {
  const ca = await createAuthority(systemClock);
  const authority = await openAuthority(ca, systemClock);
  const pair = await authority.issue({ commonName: 'h', ipAddresses: ['127.0.0.1'], usage: 'server', days: 1 });
  caBundle = Buffer.from(ca.certificate).toString('base64');
  hook = createServer({ cert: pair.certificate, key: pair.key }, (request, response) => {
    reached.push(`${request.url} ${request.headers['authorization'] ?? ''}`);
    request.resume();
    if (request.url?.startsWith('/inside')) return response.end('{"secret":"METADATA-OF-THE-CLOUD"}');
    response.writeHead(status, { location: `https://127.0.0.1:${port}/inside` });
    response.end('BODY-OF-THE-REDIRECT');
  });
  hook.listen(0, '127.0.0.1');
  await once(hook, 'listening');
  port = (hook.address() as AddressInfo).port;
  let store: ObjectStore | undefined;
  outbound = createOutbound({ store: { get: (key) => store!.get(key), list: (...args) => store!.list(...args) } });
  server = await startServer({ connectOutbound: outbound.connect });
  store = server.store;
  await server.create(HOOKS, {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingWebhookConfiguration',
    metadata: { name: 'h' },
    webhooks: [
      {
        name: 'h.example.com',
        clientConfig: { url: `https://127.0.0.1:${port}/outside`, caBundle },
        rules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['*'], resources: ['configmaps'] }],
        sideEffects: 'None',
        admissionReviewVersions: ['v1'],
        failurePolicy: 'Fail',
      },
    ],
  });
});
after(async () => {
  outbound.close();
  await server.stop();
  hook.closeAllConnections();
  hook.close();
});

for (const code of [301, 302, 303, 307, 308]) {
  // S-214: A webhook that answers with a redirect leads nowhere, and the write is refused.
  test(`a webhook that answers ${code}: the write is refused, nobody goes there`, async () => {
    status = code;
    reached.length = 0;
    const { status: answered, text } = await server.request('POST', '/api/v1/namespaces/default/configmaps', {
      body: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: `m${code}` } },
      headers: { authorization: 'Bearer of-the-user' },
    });
    assert.equal(answered, 500, text);
    assert.match(text, /failed calling webhook \\?"h\.example\.com/);
    assert.doesNotMatch(text, /METADATA-OF-THE-CLOUD/);
    assert.equal(reached.length > 0 && reached.every((line) => line.startsWith('/outside')), true, reached.join());
    assert.ok(!reached.some((line) => line.includes('of-the-user')), 'the user’s token went to the webhook');
  });
}

test('URLs that are no webhook are refused when they are configured', async () => {
  for (const url of [
    'http://127.0.0.1/x',
    'file:///etc/passwd',
    'https://user:pass@127.0.0.1/',
    'https://127.0.0.1/#a',
    'https://127.0.0.1/?a=b',
    'https:///x',
    'gopher://a/',
  ]) {
    const { status: answered, text } = await server.request('POST', HOOKS, {
      body: {
        apiVersion: 'admissionregistration.k8s.io/v1',
        kind: 'ValidatingWebhookConfiguration',
        metadata: { name: 'bad' },
        webhooks: [
          { name: 'h.example.com', clientConfig: { url }, sideEffects: 'None', admissionReviewVersions: ['v1'] },
        ],
      },
    });
    assert.equal(answered, 422, `${url}: ${text}`);
  }
});
