import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { AdmissionPlugin } from '../../packages/apiserver/src/admission/plugin.ts';
import { type InProcessServer, startServer } from '../testkit/in-process-server.ts';

let server: InProcessServer;
before(async () => {
  server = await startServer();
});
after(() => server.stop());

const CONFIG_MAPS = '/api/v1/namespaces/default/configmaps';

async function make(name: string, data: Record<string, string> = {}) {
  const { json } = await server.request('POST', CONFIG_MAPS, {
    body: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data },
  });
  return json;
}

test('PUT replaces the object and keeps what belongs to the server', async () => {
  const created = await make('replaced', { a: '1' });
  const { status, json } = await server.request('PUT', `${CONFIG_MAPS}/replaced`, {
    body: {
      ...created,
      metadata: { ...created.metadata, creationTimestamp: null, labels: { x: 'y' } },
      data: { b: '2' },
    },
  });
  assert.equal(status, 200);
  assert.deepEqual(json.data, { b: '2' });
  assert.equal(json.metadata.uid, created.metadata.uid);
  assert.equal(json.metadata.creationTimestamp, created.metadata.creationTimestamp);
  assert.ok(Number(json.metadata.resourceVersion) > Number(created.metadata.resourceVersion));
});

// S-010
// Compat Writing, P0, yes: an update that changes nothing writes nothing
test('a PUT that changes nothing writes nothing', async () => {
  const created = await make('same', { a: '1' });
  const before = server.store.revision();
  const { status, json } = await server.request('PUT', `${CONFIG_MAPS}/same`, { body: created });
  assert.equal(status, 200);
  assert.equal(json.metadata.resourceVersion, created.metadata.resourceVersion);
  assert.equal(server.store.revision(), before);
});

// S-010: Updates are compare-and-swap; an update that changes nothing writes nothing; concurrent patches all land.
// Compat Status, P0, yes: NotFound, AlreadyExists, Conflict and their messages
test('a stale resourceVersion is a conflict', async () => {
  const created = await make('stale');
  await server.request('PUT', `${CONFIG_MAPS}/stale`, { body: { ...created, data: { a: '1' } } });
  const { status, json } = await server.request('PUT', `${CONFIG_MAPS}/stale`, {
    body: { ...created, data: { b: '2' } },
  });
  assert.equal(status, 409);
  assert.equal(json.reason, 'Conflict');
  assert.equal(
    json.message,
    'Operation cannot be fulfilled on configmaps "stale": the object has been modified; please apply your changes to the latest version and try again',
  );
});

// Compat Writing, P0, yes: PUT: 409, unconditional updates, create on update, immutable metadata
test('an update without a resourceVersion is unconditional for some kinds and refused for others', async () => {
  await make('free');
  const free = await server.request('PUT', `${CONFIG_MAPS}/free`, {
    body: { metadata: { name: 'free' }, data: { a: '1' } },
  });
  assert.equal(free.status, 200);
  const leases = '/apis/coordination.k8s.io/v1/namespaces/default/leases';
  await server.create(leases, { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name: 'l' } });
  const refused = await server.request('PUT', `${leases}/l`, {
    body: { metadata: { name: 'l' }, spec: { holderIdentity: 'x' } },
  });
  assert.equal(refused.status, 422);
  assert.match(refused.json.message, /metadata.resourceVersion: Invalid value: .*must be specified for an update/);
});

// S-259
// Compat Writing, P1, yes: resourceVersion `0` is unconditional, as none is
test('resourceVersion 0 says as little as none', async (t) => {
  const path = await (async () => {
    await make('zero', { a: '1' });
    return `${CONFIG_MAPS}/zero`;
  })();
  const leases = '/apis/coordination.k8s.io/v1/namespaces/default/leases';
  await server.create(leases, { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name: 'zero' } });
  const metadata = { name: 'zero', resourceVersion: '0' };
  const cases: [string, 'PUT' | 'PATCH', string, number][] = [
    ['a PUT', 'PUT', path, 200],
    ['a patch', 'PATCH', path, 200],
    ['a PUT of a kind that wants one', 'PUT', `${leases}/zero`, 422],
    ['a patch of a kind that wants one', 'PATCH', `${leases}/zero`, 422],
  ];
  for (const [name, method, target, status] of cases) {
    await t.test(name, async () => {
      const answer = await server.request(method, target, { body: { metadata } });
      assert.equal(answer.status, status, answer.text);
      if (status === 422)
        assert.match(answer.json.message, /metadata.resourceVersion: Invalid value: .*must be specified/);
    });
  }
});

// Compat Bootstrap objects, controllers, events, leases, P1, yes: leases
test('PUT creates only kinds that say so', async () => {
  const lease = await server.request('PUT', '/apis/coordination.k8s.io/v1/namespaces/default/leases/fresh', {
    body: { metadata: { name: 'fresh' } },
  });
  assert.equal(lease.status, 201);
  const map = await server.request('PUT', `${CONFIG_MAPS}/fresh`, { body: { metadata: { name: 'fresh' } } });
  assert.equal(map.status, 404);
});

// Compat Writing, P0, yes: names of URL and body agree; name rules of each kind
test('name, namespace and uid of the body must be those of the object', async (t) => {
  await make('identity');
  const cases: [object, number, RegExp][] = [
    [{ name: 'other' }, 400, /does not match the name on the URL \(identity\)/],
    [{}, 400, /undeterminable: name must be provided/],
    [
      { name: 'other', namespace: 'other' },
      400,
      /^the namespace of the provided object does not match the namespace sent on the request$/,
    ],
    [{ name: 'identity', uid: 'x' }, 409, /Precondition failed: UID in precondition: x, UID in object meta: /],
  ];
  for (const [metadata, status, message] of cases) {
    await t.test(JSON.stringify(metadata), async () => {
      const answer = await server.request('PUT', `${CONFIG_MAPS}/identity`, { body: { metadata } });
      assert.equal(answer.status, status, answer.text);
      assert.match(answer.json.message, message);
    });
  }
});

// S-259: What only the server says cannot be said by an update or a patch; `resourceVersion: "0"` says as little as
//   none.
// Compat Writing, P0, yes: an update cannot mark an object as being deleted, a patch cannot change its uid
test('an update cannot say that an object is being deleted, and a patch cannot give it another uid', async (t) => {
  await make('alive');
  const time = '2030-01-01T00:00:00Z';
  const uid = 'metadata.uid: Invalid value: "x": field is immutable';
  const stamp = `metadata.deletionTimestamp: Invalid value: "${time}": field is immutable`;
  const grace = 'metadata.deletionGracePeriodSeconds: Invalid value: 5: field is immutable';
  const cases: [string, object, string][] = [
    ['PATCH', { uid: 'x' }, uid],
    ['PATCH', { deletionTimestamp: time }, stamp],
    ['PATCH', { deletionTimestamp: time, deletionGracePeriodSeconds: 5 }, `[${stamp}, ${grace}]`],
    ['PUT', { name: 'alive', deletionGracePeriodSeconds: 5 }, grace],
  ];
  for (const [method, metadata, message] of cases) {
    await t.test(`${method} ${JSON.stringify(metadata)}`, async () => {
      const answer = await server.request(method, `${CONFIG_MAPS}/alive`, { body: { metadata } });
      assert.deepEqual([answer.status, answer.json.message], [422, `ConfigMap "alive" is invalid: ${message}`]);
    });
  }
  const kept = { creationTimestamp: time, generation: 7, selfLink: '/x' };
  const { status, json } = await server.request('PATCH', `${CONFIG_MAPS}/alive`, { body: { metadata: kept } });
  assert.equal(status, 200, 'what the server puts back by itself is no error');
  assert.notEqual(json.metadata.creationTimestamp, time);
});

// S-259
test('once it is being deleted, the time is put back and the grace period is validated', async () => {
  const created = await make('dying');
  const path = `${CONFIG_MAPS}/dying`;
  await server.request('PATCH', path, { body: { metadata: { finalizers: ['example.com/wait'] } } });
  const { json: dying } = await server.request('DELETE', path);
  const write = (metadata: object) => server.request('PATCH', path, { body: { metadata } });
  const back = await write({ deletionTimestamp: null, deletionGracePeriodSeconds: null });
  assert.equal(back.status, 200, back.text);
  assert.equal(back.json.metadata.deletionTimestamp, dying.metadata.deletionTimestamp);
  assert.equal((await write({ deletionTimestamp: '2030-01-01T00:00:00Z' })).status, 200);
  assert.equal((await write({ deletionGracePeriodSeconds: 33 })).status, 422);
  assert.equal((await write({ finalizers: null })).json.metadata.uid, created.metadata.uid);
});

// S-010
test('concurrent patches all land', async () => {
  await make('busy');
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, i) =>
      server.request('PATCH', `${CONFIG_MAPS}/busy`, { body: { data: { [`k${i}`]: 'x' } } }),
    ),
  );
  assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]));
  const { json } = await server.request('GET', `${CONFIG_MAPS}/busy`);
  assert.equal(Object.keys(json.data).length, 20);
});

// Compat Patch, P0, yes: retries when another write came between
test('a patch is computed again when another write came in between', async () => {
  let interfere: (() => Promise<unknown>) | undefined;
  const slow: AdmissionPlugin = {
    name: 'Slow',
    matches: (operation, info) => operation === 'UPDATE' && info.resource === 'configmaps',
    async mutate() {
      const act = interfere;
      interfere = undefined;
      await act?.();
    },
  };
  const own = await startServer({ admission: [slow] });
  await own.create(CONFIG_MAPS, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'raced' } });
  interfere = () => own.request('PATCH', `${CONFIG_MAPS}/raced`, { body: { data: { first: '1' } } });
  const patched = await own.request('PATCH', `${CONFIG_MAPS}/raced`, { body: { data: { second: '2' } } });
  assert.deepEqual(patched.json.data, { first: '1', second: '2' });
  const { json } = await own.request('GET', `${CONFIG_MAPS}/raced`);
  interfere = () => own.request('PATCH', `${CONFIG_MAPS}/raced`, { body: { data: { third: '3' } } });
  const pinned = await own.request('PUT', `${CONFIG_MAPS}/raced`, { body: { ...json, data: {} } });
  assert.equal(pinned.status, 409);
  await own.stop();
});
