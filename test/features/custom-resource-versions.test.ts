import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { OutboundTarget } from '../../packages/apiserver/src/outbound/outbound.ts';
import type { ApiRequest } from '../../packages/runtime/src/http/seam.ts';
import { DEFINITIONS, definition, establish, settled, version } from '../testkit/custom-definitions.ts';
import { type InProcessServer, startServer } from '../testkit/in-process-server.ts';

// biome-ignore lint/suspicious/noExplicitAny: reviews and objects of every shape.
type Json = any;

/** The far end of conversion: `v1` keeps host and port apart, `v2` joins them. */
const convertOne = (object: Json, apiVersion: string): Json => {
  const next = structuredClone(object);
  next.apiVersion = apiVersion;
  if (apiVersion.endsWith('/v2') && object.spec?.host !== undefined) {
    next.spec = { address: `${object.spec.host}:${object.spec.port ?? ''}` };
  } else if (apiVersion.endsWith('/v1') && object.spec?.address !== undefined) {
    const [host, port] = object.spec.address.split(':');
    next.spec = { host, ...(port && { port }) };
  }
  return next;
};

/** What a bundle looks like: nothing is dialled here. */
const BUNDLE = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n';

let reviews: Json[] = [];
const targets: OutboundTarget[] = [];
const requests: ApiRequest[] = [];
const honest = (review: Json): Json => ({
  apiVersion: review.apiVersion,
  kind: review.kind,
  response: {
    uid: review.request.uid,
    result: { status: 'Success' },
    convertedObjects: review.request.objects.map((one: Json) => convertOne(one, review.request.desiredAPIVersion)),
  },
});
let answer: (review: Json) => Json = honest;

let server: InProcessServer;
before(async () => {
  server = await startServer({
    connectOutbound: (target) => async (request) => {
      targets.push(target);
      requests.push(request);
      const review = JSON.parse(new TextDecoder().decode(request.body));
      reviews.push(review);
      const body = new TextEncoder().encode(JSON.stringify(answer(review)));
      return { status: 200, headers: { 'content-type': 'application/json' }, body };
    },
  });
});
after(() => server.stop());

const text = { type: 'string' };
const object = (properties: object) => ({ type: 'object', properties });

test('strategy None changes apiVersion and drops what the other version does not know', async () => {
  await establish(
    server,
    definition({
      name: 'plain',
      versions: [
        version('v1', { spec: object({ a: text }) }, { storage: true }),
        version('v2', { spec: object({ a: text, b: { ...text, default: 'x' } }) }),
      ],
    }),
  );
  const at = (v: string): string => `/apis/example.com/${v}/namespaces/default/plains`;
  const sent = { apiVersion: 'example.com/v2', kind: 'Plain', metadata: { name: 'p' }, spec: { a: '1', b: '2' } };
  const created = await server.request('POST', at('v2'), { body: sent });
  assert.equal(created.status, 201, created.text);
  const v1 = await server.request('GET', `${at('v1')}/p`);
  assert.deepEqual([v1.json.apiVersion, v1.json.spec], ['example.com/v1', { a: '1' }]);
  const v2 = await server.request('GET', `${at('v2')}/p`);
  assert.deepEqual([v2.json.apiVersion, v2.json.spec], ['example.com/v2', { a: '1' }]);
  assert.equal(v1.json.metadata.resourceVersion, v2.json.metadata.resourceVersion);
  const listed = await server.request('GET', at('v2'));
  assert.deepEqual(listed.json.items[0].apiVersion, 'example.com/v2');
});

test('the defaults of the stored version are there in each, whichever version the object was written in', async () => {
  const defaults = (own: string) =>
    object(Object.fromEntries(['v1', 'v2'].map((name) => [name, { ...text, ...(name === own && { default: own }) }])));
  await establish(
    server,
    definition({
      name: 'cog',
      versions: [version('v1', { spec: defaults('v1') }, { storage: true }), version('v2', { spec: defaults('v2') })],
    }),
  );
  const cogs = (name: string) => `/apis/example.com/${name}/namespaces/default/cogs`;
  const given = { v1: { v1: 'v1' }, v2: { v1: 'v1', v2: 'v2' } };
  for (const written of ['v1', 'v2'] as const) {
    const body = { apiVersion: `example.com/${written}`, kind: 'Cog', metadata: { name: written }, spec: {} };
    const created = await server.create(cogs(written), body);
    assert.deepEqual(created.spec, given[written]);
    for (const read of ['v1', 'v2']) {
      const { json } = await server.request('GET', `${cogs(read)}/${written}`);
      assert.deepEqual(json.spec, given[written], `written in ${written}, read in ${read}`);
    }
  }
});

// S-336: A write through one endpoint of a custom resource gives nothing of the other one defaults of its version.
// Compat CustomResourceDefinitions, P2, yes: a write of the status, or of the main resource, through another version
//   gives what it keeps of the stored object no defaults of that version
test('a write of the status gives the spec no defaults of its version, nor the other way round', async () => {
  const part = object({ a: { ...text, default: 'A' }, c: text });
  const more = object({ a: { ...text, default: 'A' }, c: { ...text, default: 'C' } });
  const subresources = { status: {} };
  await establish(
    server,
    definition({
      name: 'half',
      versions: [
        version('v1', { spec: part, status: part }, { storage: true, subresources }),
        version('v2', { spec: more, status: more }, { subresources }),
      ],
    }),
  );
  const at = (v: string): string => `/apis/example.com/${v}/namespaces/default/halfs/h`;
  const v1 = { apiVersion: 'example.com/v1', kind: 'Half', metadata: { name: 'h' }, spec: {} };
  const created = await server.request('POST', at('v1').slice(0, -2), { body: v1 });
  assert.equal(created.status, 201, created.text);
  const { name, resourceVersion } = created.json.metadata;
  const v2 = { ...v1, apiVersion: 'example.com/v2', metadata: { name, resourceVersion } };
  const status = await server.request('PUT', `${at('v2')}/status`, { body: { ...v2, status: {} } });
  assert.equal(status.status, 200, status.text);
  assert.deepEqual([status.json.spec, status.json.status], [{ a: 'A' }, { a: 'A', c: 'C' }]);
  const again = { ...v1, metadata: status.json.metadata, status: {} };
  const back = await server.request('PUT', `${at('v1')}/status`, { body: again });
  assert.deepEqual([back.json.spec, back.json.status], [{ a: 'A' }, { a: 'A' }]);
  const spec = await server.request('PUT', at('v2'), { body: { ...v2, metadata: back.json.metadata } });
  assert.deepEqual([spec.json.spec, spec.json.status], [{ a: 'A', c: 'C' }, { a: 'A' }]);
  const patched = await server.request('PATCH', at('v2'), {
    body: { spec: { c: null } },
    headers: { 'content-type': 'application/merge-patch+json' },
  });
  assert.deepEqual([patched.json.spec, patched.json.status], [{ a: 'A', c: 'C' }, { a: 'A' }]);
});

// S-155
// Compat CustomResourceDefinitions, P0, yes: storedVersions; versions that objects may lie in stay
test('versions come, go and change places; what was stored in one is remembered', async () => {
  const CRD = definition({
    name: 'move',
    versions: [version('v1', { spec: object({ a: text }) }, { storage: true })],
  });
  await establish(server, CRD);
  const at = (v: string): string => `/apis/example.com/${v}/namespaces/default/moves`;
  await server.create(at('v1'), {
    apiVersion: 'example.com/v1',
    kind: 'Move',
    metadata: { name: 'm' },
    spec: { a: '1' },
  });
  const both = [
    version('v1', { spec: object({ a: text }) }),
    version('v2', { spec: object({ a: text }) }, { storage: true }),
  ];
  const patch = (versions: readonly object[]) =>
    server.request('PATCH', `${DEFINITIONS}/moves.example.com`, { body: { spec: { versions } } });
  assert.equal((await patch(both)).status, 200);
  const crd = await settled(server, 'moves.example.com');
  assert.deepEqual(crd.status.storedVersions, ['v1', 'v2']);
  assert.equal((await server.request('GET', `${at('v2')}/m`)).json.apiVersion, 'example.com/v2');
  // A write that changes nothing moves the object to the new storage version.
  await server.request('PATCH', `${at('v2')}/m`, { body: {} });
  const stored = server.store.get({ prefix: 'example.com/moves', namespace: 'default', name: 'm' });
  assert.equal(stored?.object.apiVersion, 'example.com/v2');

  const dropped = await patch(both.slice(1));
  assert.equal(dropped.status, 422);
  assert.match(
    dropped.json.message,
    /status.storedVersions\[0\]: Invalid value: "v1": missing from spec.versions; v1 was previously a storage version/,
  );
  const shrunk = await server.request('PATCH', `${DEFINITIONS}/moves.example.com/status`, {
    body: { status: { storedVersions: ['v2'] } },
  });
  assert.deepEqual(shrunk.json.status.storedVersions, ['v2']);
  assert.equal((await patch([{ ...both[0], served: false }, both[1]!])).status, 200);
  await settled(server, 'moves.example.com');
  assert.equal((await server.request('GET', at('v1'))).status, 404);
  assert.equal((await server.request('GET', at('v2'))).status, 200);
  assert.equal((await patch(both.slice(1))).status, 200);
});

test('a deprecated version warns', async () => {
  await establish(
    server,
    definition({
      name: 'aged',
      versions: [
        version('v1', { spec: object({}) }, { storage: true }),
        version('v1beta1', { spec: object({}) }, { deprecated: true }),
        version('v1alpha1', { spec: object({}) }, { deprecated: true, deprecationWarning: 'do not' }),
      ],
    }),
  );
  const get = async (v: string) => (await server.request('GET', `/apis/example.com/${v}/ageds`)).headers['warning'];
  assert.equal(await get('v1'), undefined);
  assert.equal(await get('v1beta1'), '299 - "example.com/v1beta1 Aged is deprecated; use example.com/v1 Aged"');
  assert.equal(await get('v1alpha1'), '299 - "do not"');
});

const HOOKED = definition({
  name: 'hook',
  versions: [
    version('v1', { spec: object({ host: text, port: text }) }, { storage: true }),
    version('v2', { spec: object({ address: text }) }, { selectableFields: [{ jsonPath: '.spec.address' }] }),
  ],
  conversion: {
    strategy: 'Webhook',
    webhook: {
      conversionReviewVersions: ['v1'],
      clientConfig: {
        service: { namespace: 'hooks', name: 'converter', path: '/convert' },
        caBundle: btoa(BUNDLE),
      },
    },
  },
});
const HOOKS = (v: string): string => `/apis/example.com/${v}/namespaces/default/hooks`;
const hook = (name: string, address: string) => ({
  apiVersion: 'example.com/v2',
  kind: 'Hook',
  metadata: { name },
  spec: { address },
});

// Compat CustomResourceDefinitions, P1, yes: conversion webhooks
test('a webhook converts what is written and read', async () => {
  await establish(server, HOOKED);
  const created = await server.request('POST', HOOKS('v2'), { body: hook('a', 'here:80') });
  assert.equal(created.status, 201, created.text);
  assert.deepEqual(created.json.spec, { address: 'here:80' });
  const stored = server.store.get({ prefix: 'example.com/hooks', namespace: 'default', name: 'a' });
  assert.deepEqual(stored?.object['spec'], { host: 'here', port: '80' });
  assert.deepEqual(targets[0], {
    address: { service: { namespace: 'hooks', name: 'converter', port: 443 } },
    caBundle: BUNDLE,
  });
  assert.deepEqual([requests[0]!.method, requests[0]!.path, requests[0]!.query], ['POST', '/convert', 'timeout=30s']);
  reviews = [];
  assert.deepEqual((await server.request('GET', `${HOOKS('v1')}/a`)).json.spec, { host: 'here', port: '80' });
  assert.equal(reviews.length, 0, 'the stored version asks nobody');
  assert.deepEqual((await server.request('GET', `${HOOKS('v2')}/a`)).json.spec, { address: 'here:80' });
});

// S-155: Versions of a custom kind are converted, by a webhook in one call for a list; watches see every change in
//   their version and in order.
test('a list is converted in one call, and selectors see what was converted', async () => {
  await server.request('POST', HOOKS('v2'), { body: hook('b', 'there:81') });
  reviews = [];
  const listed = await server.request('GET', HOOKS('v2'));
  assert.deepEqual(
    listed.json.items.map((one: Json) => one.spec.address),
    ['here:80', 'there:81'],
  );
  assert.deepEqual(
    reviews.map((one) => one.request.objects.length),
    [2],
  );
  const selected = await server.request('GET', `${HOOKS('v2')}?fieldSelector=spec.address=there:81`);
  assert.deepEqual(
    selected.json.items.map((one: Json) => one.metadata.name),
    ['b'],
  );
});

// S-155
test('patch, apply and update work in the version of the request', async () => {
  const patched = await server.request('PATCH', `${HOOKS('v2')}/a`, { body: { spec: { address: 'new:1' } } });
  assert.deepEqual(patched.json.spec, { address: 'new:1' });
  assert.deepEqual((await server.request('GET', `${HOOKS('v1')}/a`)).json.spec, { host: 'new', port: '1' });
  const applied = await server.request('PATCH', `${HOOKS('v2')}/c?fieldManager=me`, {
    body: hook('c', 'c:3'),
    headers: { 'content-type': 'application/apply-patch+yaml' },
  });
  assert.equal(applied.status, 201, applied.text);
  assert.deepEqual(applied.json.spec, { address: 'c:3' });
  const put = await server.request('PUT', `${HOOKS('v2')}/c`, { body: { ...applied.json, spec: { address: 'c:4' } } });
  assert.deepEqual(put.json.spec, { address: 'c:4' });
});

// S-155
test('watches see every change in their version and in order', async () => {
  const { json } = await server.request('GET', HOOKS('v2'));
  const initial = await server.watch(`${HOOKS('v2')}?watch=true`);
  const names = [await initial.next(), await initial.next(), await initial.next()].map(
    (one) => one!.object.spec.address,
  );
  assert.deepEqual(names, ['new:1', 'there:81', 'c:4']);
  initial.close();
  const watch = await server.watch(`${HOOKS('v2')}?watch=true&resourceVersion=${json.metadata.resourceVersion}`);
  await server.request('POST', HOOKS('v1'), {
    body: { apiVersion: 'example.com/v1', kind: 'Hook', metadata: { name: 'd' }, spec: { host: 'd', port: '4' } },
  });
  await server.request('PATCH', `${HOOKS('v1')}/d`, { body: { spec: { port: '5' } } });
  await server.request('DELETE', `${HOOKS('v1')}/d`);
  const seen = [await watch.next(), await watch.next(), await watch.next()];
  assert.deepEqual(
    seen.map((one) => `${one!.type} ${one!.object.apiVersion} ${one!.object.spec.address}`),
    ['ADDED example.com/v2 d:4', 'MODIFIED example.com/v2 d:5', 'DELETED example.com/v2 d:5'],
  );
  watch.close();
});

const LIES: readonly (readonly [string, (good: Json) => void, RegExp])[] = [
  [
    'says that it failed',
    (good) => {
      good.response.result = { status: 'Failure', message: 'no idea' };
    },
    /conversion webhook for example.com\/v1, Kind=Hook failed: no idea/,
  ],
  [
    'answers another request',
    (good) => {
      good.response.uid = 'other';
    },
    /expected response.uid=/,
  ],
  [
    'loses objects',
    (good) => {
      good.response.convertedObjects = [];
    },
    /returned 0 objects, expected 1/,
  ],
  [
    'renames objects',
    (good) => {
      good.response.convertedObjects[0].metadata.name = 'other';
    },
    /must have the same name: a != other/,
  ],
  [
    'gives another version',
    (good) => {
      good.response.convertedObjects[0].apiVersion = 'example.com/v3';
    },
    /invalid groupVersion \(expected example.com\/v2, received example.com\/v3\)/,
  ],
];
for (const [what, lie, message] of LIES) {
  test(`a webhook that ${what} makes the request fail`, async () => {
    answer = (review) => {
      const good = honest(review);
      lie(good);
      return good;
    };
    try {
      const failed = await server.request('GET', `${HOOKS('v2')}/a`);
      assert.equal(failed.status, 500);
      assert.equal(failed.json.reason, undefined, 'upstream tells it as a plain error');
      assert.match(failed.json.message, message);
    } finally {
      answer = honest;
    }
  });
}

test('of metadata a webhook changes labels and annotations only', async () => {
  answer = (review) => {
    const good = honest(review);
    const [one] = good.response.convertedObjects;
    one.metadata = { ...one.metadata, labels: { by: 'webhook' }, finalizers: ['a/b'], creationTimestamp: null };
    return good;
  };
  try {
    const { json } = await server.request('GET', `${HOOKS('v2')}/a`);
    assert.deepEqual(json.metadata.labels, { by: 'webhook' });
    assert.equal(json.metadata.finalizers, undefined);
    assert.ok(json.metadata.creationTimestamp);
  } finally {
    answer = honest;
  }
});
