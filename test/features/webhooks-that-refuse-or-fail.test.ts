/** What a client hears of webhooks: refusals, warnings, and failures in upstream’s words. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { jsonPatch } from '../testkit/webhook-server.ts';
import { configMap, GROUP, type HookOptions, webhookSuite } from '../testkit/webhook-suite.ts';

const suite = webhookSuite({
  '/allow': () => ({}),
  '/deny': () => ({ allowed: false, status: { message: 'not today', code: 418, reason: 'Teapot' } }),
  '/deny-mute': () => ({ allowed: false }),
  '/deny-ok': () => ({ allowed: false, status: { code: 200, reason: 'Because' } }),
  '/label': () => jsonPatch({ op: 'add', path: '/metadata/labels', value: { hooked: 'yes' } }),
  '/mistyped': () => jsonPatch({ op: 'add', path: '/data', value: ['a'] }),
  '/unpatchable': () => jsonPatch({ op: 'remove', path: '/data/absent' }),
  '/warn': () => ({ warnings: ['mind the gap'], auditAnnotations: { seen: 'by me' } }),
  '/broken': () => ({ code: 500, text: 'kaboom' }),
  '/page': () => ({ code: 200, text: '<html>' }),
  '/list': () => ({ code: 200, text: '[]' }),
  '/mostly': () => ({ allowed: 'mostly' }),
  '/one-warning': () => ({ warnings: 'mind the gap' }),
  '/no-base64': () => ({ patchType: 'JSONPatch', patch: 'W10%' }),
  '/gibberish': () => ({ code: 200, text: '{"response":{"allowed":true}}' }),
  '/slow': () => new Promise((resolve) => setTimeout(() => resolve({}), 3000).unref()),
});
const { annotations, configure, post } = suite;

// S-157
// Compat Admission and quota, P1, yes: webhooks: review, order, conversion, results, time-outs, dry run
test('failures are worded as upstream words them', async () => {
  const dead = { url: 'https://127.0.0.1:1/x', caBundle: suite.hooks.caBundle };
  const service = { service: { namespace: 'default', name: 'nowhere', path: '/x' }, caBundle: suite.hooks.caBundle };
  const untrusted = { url: suite.hooks.url('/allow') };
  const fail = (name: string, why: string): string =>
    `Internal error occurred: failed calling webhook "${name}.example.com": ${why}`;
  const cases: [HookOptions, RegExp | string][] = [
    [
      { path: '/dead', client: dead },
      fail(
        'dead',
        'failed to call webhook: Post "https://127.0.0.1:1/x?timeout=10s": dial tcp 127.0.0.1:1: connect: connection refused',
      ),
    ],
    [
      { path: '/svc', client: service },
      fail(
        'svc',
        'failed to call webhook: Post "https://nowhere.default.svc:443/x?timeout=10s": service "nowhere" not found',
      ),
    ],
    [
      { path: '/who', client: untrusted },
      fail(
        'who',
        `failed to call webhook: Post "${suite.hooks.url('/allow')}?timeout=10s": tls: failed to verify certificate: x509: certificate signed by unknown authority`,
      ),
    ],
    [{ path: '/absent' }, fail('absent', 'failed to call webhook: the server could not find the requested resource')],
    [
      { path: '/broken' },
      fail(
        'broken',
        'failed to call webhook: an error on the server ("kaboom") has prevented the request from succeeding',
      ),
    ],
    [
      { path: '/page' },
      fail(
        'page',
        "failed to call webhook: couldn't get version/kind; json parse error: invalid character '<' looking for beginning of value",
      ),
    ],
    [{ path: '/list' }, /json parse error: expected object, got array$/],
    [{ path: '/mostly' }, fail('mostly', 'failed to call webhook: response.allowed: expected bool, got string')],
    [{ path: '/one-warning' }, /response\.warnings: expected array, got string$/],
    [{ path: '/no-base64' }, fail('no-base64', 'failed to call webhook: illegal base64 data')],
    [
      { path: '/no-ca', client: { url: suite.hooks.url('/allow'), caBundle: 'Cg==' } },
      fail('no-ca', 'could not get REST client: unable to load root certificates: unable to parse bytes as PEM block'),
    ],
    [{ path: '/gibberish' }, /received invalid webhook response: expected response.uid=/],
    [
      { path: '/slow', timeoutSeconds: 1 },
      fail('slow', `failed to call webhook: Post "${suite.hooks.url('/slow')}?timeout=1s": context deadline exceeded`),
    ],
    [{ path: '/mistyped' }, /^Internal error occurred: /],
    [{ path: '/unpatchable' }, /^Internal error occurred: .*does not apply: there is no "absent"/],
  ];
  for (const [options, message] of cases) {
    await configure('Mutating', 'm', options);
    const { status, json } = await post();
    assert.equal(status, 500, `${options.path}: ${json.message}`);
    assert.equal(json.reason, 'InternalError');
    if (typeof message === 'string') assert.equal(json.message, message);
    else assert.match(json.message, message);
    await suite.server.request('DELETE', `${GROUP}/mutatingwebhookconfigurations/m`);
  }
});

test('failurePolicy Ignore passes a dead webhook by and says so in the audit', async () => {
  const client = { url: 'https://127.0.0.1:1/x', caBundle: suite.hooks.caBundle };
  await configure('Mutating', 'm', { path: '/dead', client, failurePolicy: 'Ignore' });
  await configure('Validating', 'v', { path: '/dead', client, failurePolicy: 'Ignore' });
  assert.equal((await post()).status, 201);
  assert.equal(annotations.get('failed-open.mutation.webhook.admission.k8s.io/round_0_index_0'), 'dead.example.com');
  assert.equal(annotations.get('failed-open.validating.webhook.admission.k8s.io/round_0_index_0'), 'dead.example.com');
});

test('a denial is the webhook’s own status, at least a 400', async () => {
  const cases = [
    ['/deny', 418, 'Teapot', 'admission webhook "deny.example.com" denied the request: not today'],
    ['/deny-mute', 400, undefined, 'admission webhook "deny-mute.example.com" denied the request without explanation'],
    ['/deny-ok', 400, 'Because', 'admission webhook "deny-ok.example.com" denied the request: Because'],
  ] as const;
  for (const kind of ['Mutating', 'Validating'] as const) {
    for (const [path, code, reason, message] of cases) {
      await configure(kind, 'x', { path });
      const { status, json } = await post();
      assert.deepEqual([status, json.code, json.reason, json.message], [code, code, reason, message]);
      await suite.server.request('DELETE', `${GROUP}/${kind.toLowerCase()}webhookconfigurations/x`);
    }
  }
});

// S-157
test('webhooks are reached through a Service and its endpoints', async () => {
  const slice = (ready: boolean) => ({
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: 'hook-1', labels: { 'kubernetes.io/service-name': 'hook' } },
    addressType: 'IPv4',
    endpoints: [{ addresses: ['127.0.0.1'], conditions: { ready } }],
    ports: [{ name: 'web', port: suite.hooks.port, protocol: 'TCP' }],
  });
  const slices = '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices';
  await suite.server.create('/api/v1/namespaces/default/services', {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'hook' },
    spec: { ports: [{ name: 'web', port: 8443, targetPort: 'https' }] },
  });
  await suite.server.create(slices, slice(false));
  const client = {
    service: { namespace: 'default', name: 'hook', port: 8443, path: '/label' },
    caBundle: suite.hooks.caBundle,
  };
  await configure('Mutating', 'm', { path: '/label', client });
  const refused = await post();
  assert.match(
    refused.json.message,
    /Post "https:\/\/hook\.default\.svc:8443\/label\?timeout=10s": no endpoints available for service "hook"$/,
  );
  await suite.server.request('PUT', `${slices}/hook-1`, { body: slice(true) });
  const { json } = await post();
  assert.deepEqual(json.metadata.labels, { hooked: 'yes' });
});

test('warnings and audit annotations are passed on', async () => {
  await configure('Validating', 'v', { path: '/warn' });
  const { headers } = await post();
  assert.equal(headers['warning'], '299 - "mind the gap"');
  assert.equal(annotations.get('warn.example.com/seen'), 'by me');
});

test('a dry run reaches only webhooks without side effects', async () => {
  await configure('Validating', 'v', { path: '/allow', sideEffects: 'NoneOnDryRun' });
  assert.equal((await post(configMap(), '?dryRun=All')).status, 201);
  assert.equal(suite.hooks.calls[0]!.body.request.dryRun, true);
  // What is stored may come from before this was required.
  const prefix = 'admissionregistration.k8s.io/validatingwebhookconfigurations';
  await suite.server.store.write({ prefix, namespace: '', name: 'v' }, (current) => {
    const object = structuredClone(current!.object) as never as { webhooks: { sideEffects: string }[] };
    object.webhooks[0]!.sideEffects = 'Some';
    return { type: 'put', object: object as never };
  });
  const { status, json } = await post(configMap(), '?dryRun=All');
  assert.equal(status, 400);
  assert.equal(json.message, 'admission webhook "allow.example.com" does not support dry run');
});
