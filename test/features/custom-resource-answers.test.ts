/** What clients of custom resources get, held against apiextensions-apiserver 1.36.4 over HTTP. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { DEFINITIONS, definition, establish } from '../testkit/custom-definitions.ts';
import { type InProcessServer, startServer } from '../testkit/in-process-server.ts';

let server: InProcessServer;
before(async () => {
  server = await startServer();
  await establish(server, ODD);
});
after(() => server.stop());

const ODDS = '/apis/example.com/v1/namespaces/default/odds';
const APPLY = { 'content-type': 'application/apply-patch+yaml' };
const MERGE = { 'content-type': 'application/merge-patch+json' };
const ODD = definition({
  name: 'odd',
  spec: {
    type: 'object',
    properties: {
      size: { type: 'string' },
      replicas: { type: 'integer', default: 1 },
      labels: { type: 'object', additionalProperties: { type: 'string' } },
    },
  },
  root: { status: { type: 'object', properties: { replicas: { type: 'integer' } } } },
  version: {
    subresources: {
      status: {},
      scale: { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas' },
    },
  },
});
const odd = (name: string, spec?: unknown, metadata: object = {}) => ({
  apiVersion: 'example.com/v1',
  kind: 'Odd',
  metadata: { name, ...metadata },
  ...(spec !== undefined && { spec }),
});
const create = (name: string, spec?: unknown) => server.request('POST', ODDS, { body: odd(name, spec) });
const apply = (name: string, spec?: unknown, metadata: object = {}) =>
  server.request('PATCH', `${ODDS}/${name}?fieldManager=one&force=true`, {
    body: odd(name, spec, metadata),
    headers: APPLY,
  });
const merge = (path: string, body: object) => server.request('PATCH', path, { body, headers: MERGE });

// S-337: What apiextensions answers to odd applies, deletions, paths and watches of custom resources is answered here.
test('an apply of null is treated as null, and a map that it empties is null', async () => {
  assert.equal((await apply('nulls', { size: null })).status, 422);
  assert.equal(
    (await apply('nulls', { replicas: null })).json.spec.replicas,
    1,
    'a null with a default is the default',
  );
  assert.equal((await apply('emptied', { size: 'S' })).status, 201);
  const emptied = await apply('emptied', {});
  assert.deepEqual(emptied.json.spec, { replicas: 1 }, 'what nobody owns stays');
  assert.equal((await apply('labelled', { labels: { a: 'b' } })).status, 201);
  const refused = await apply('labelled', { labels: {} });
  assert.equal(refused.status, 422);
  assert.match(refused.json.message, /spec.labels in body must be of type object: "null"/);
  assert.equal((await apply('meta', {}, { labels: { a: 'b' } })).status, 201);
  const meta = await apply('meta', {}, { labels: {} });
  assert.equal('labels' in meta.json.metadata, false, 'metadata has types');
});

// S-337
// Compat Writing, P2, yes: the DELETED event of an object whose last finalizer went shows the state that was stored
test('what is removed by its last finalizer is answered as it was stored', async () => {
  await server.request('POST', ODDS, { body: odd('held', {}, { finalizers: ['example.com/hold'] }) });
  const { json } = await server.request('DELETE', `${ODDS}/held`);
  const watch = await server.watch(`${ODDS}?watch=true&resourceVersion=${json.metadata.resourceVersion}`);
  const freed = await merge(`${ODDS}/held`, { metadata: { finalizers: null } });
  assert.equal('finalizers' in freed.json.metadata, false);
  assert.equal(
    freed.json.metadata.resourceVersion,
    json.metadata.resourceVersion,
    'the state asked for was never stored',
  );
  const event = await watch.next();
  watch.close();
  assert.equal(event!.type, 'DELETED');
  assert.deepEqual(event!.object.metadata.finalizers, ['example.com/hold']);
});

test('a new owner by way of scale has no time', async () => {
  await create('scaled', {});
  await merge(`${ODDS}/scaled/scale?fieldManager=scaler`, { spec: { replicas: 3 } });
  const { json } = await server.request('GET', `${ODDS}/scaled`);
  const entry = json.metadata.managedFields.find(({ manager }: { manager: string }) => manager === 'scaler');
  assert.deepEqual([entry.subresource, entry.time], ['scale', undefined]);
  const negative = await merge(`${ODDS}/scaled/scale`, { spec: { replicas: -1 } });
  assert.equal(
    negative.json.message,
    'Odd.example.com "scaled" is invalid: .spec.replicas: Invalid value: -1: should be a non-negative integer',
  );
});

test('a write gives up the record of its owners where the object cannot be typed', async () => {
  let { resourceVersion } = (await create('untyped', {})).json.metadata;
  const put = async (status: object) => {
    const body = { ...odd('untyped', { size: 'S' }, { resourceVersion }), status };
    const { json } = await server.request('PUT', `${ODDS}/untyped`, { body });
    resourceVersion = json.metadata.resourceVersion;
    return json.metadata.managedFields;
  };
  assert.equal((await put({ replicas: 1 })).length, 1);
  assert.equal(await put({ replicas: 'x' }), undefined);
});

test('an update of another incarnation is refused with the key', async () => {
  await create('again', {});
  const answer = await server.request('PUT', `${ODDS}/again`, { body: odd('again', {}, { uid: 'other' }) });
  assert.equal(answer.status, 409);
  assert.match(
    answer.json.message,
    /StorageError: invalid object, Code: 4, Key: \/registry\/example.com\/odds\/default\/again, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: other,/,
  );
});

// S-337
// Compat HTTP, P2, yes: paths and methods that fit nothing: upstream's code for each
test('paths and methods that fit nothing', async () => {
  const answerOf = async (method: string, path: string, body?: object) => {
    const { status, json } = await server.request(method, path, { ...(body && { body }), headers: MERGE });
    return [status, json?.message ?? ''];
  };
  assert.deepEqual(await answerOf('PATCH', ODDS, {}), [400, 'name must be provided']);
  assert.equal((await answerOf('DELETE', '/apis/example.com/v1/odds'))[0], 404);
  assert.deepEqual(await answerOf('OPTIONS', `${ODDS}/x`), [
    405,
    ' is not supported on resources of kind "odds.example.com"',
  ]);
  assert.equal(
    (await server.request('POST', `${ODDS}/ignored`, { body: odd('named', {}) })).json.metadata.name,
    'named',
  );
  const discovery = await server.request('POST', '/apis/example.com/v1', { body: {} });
  assert.equal(discovery.json.kind, 'APIResourceList');
  assert.equal((await server.request('POST', '/api/v1', { body: {} })).status, 405);
});

test('a list of one name has one page, and a selector of nothing takes all', async () => {
  await create('only', {});
  const one = await server.request('GET', `${ODDS}?limit=1&fieldSelector=metadata.name%3Donly`);
  assert.deepEqual([one.json.items.length, one.json.metadata.continue], [1, '']);
  assert.equal((await server.request('GET', `${ODDS}?fieldSelector=%3D`)).status, 200);
});

// S-337
test('a watch that could not be', async () => {
  const answer = await server.request('GET', `${ODDS}?watch=true&continue=x`);
  assert.match(answer.json.message, /resourceVersionMatch is forbidden when continue is provided/);
  const watch = await server.watch(`${ODDS}?watch=true&timeoutSeconds=-1`);
  const event = await watch.next();
  watch.close();
  assert.deepEqual([event!.type, event!.object.message], ['ERROR', 'context deadline exceeded']);
});

test('routes of built-in kinds say what they produce', async () => {
  const asked = async (path: string, accept: string) => {
    const { status, json } = await server.request('GET', path, { headers: { accept } });
    return [status, json?.message];
  };
  const all = 'application/json, application/yaml, application/vnd.kubernetes.protobuf';
  const text = `406: Not Acceptable\n\nAvailable representations: ${all}`;
  assert.deepEqual(await asked('/api/v1/namespaces/default', 'text/html'), [406, text]);
  assert.deepEqual(await asked('/api/v1', 'application/*'), [406, text]);
  const streams = ', application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch';
  assert.deepEqual(await asked('/api/v1/namespaces', 'text/html'), [406, text + streams]);
  const custom = `only the following media types are accepted: ${all}`;
  assert.deepEqual(await asked(`${ODDS}/nosuch/scale`, 'text/html'), [406, custom]);
});

// Compat Discovery, version, OpenAPI, P2, yes: `/openapi/v3` is revalidated: ETag and 304
test('the index of OpenAPI documents is fetched once', async () => {
  const { headers } = await server.request('GET', '/openapi/v3');
  const again = await server.request('GET', '/openapi/v3', { headers: { 'if-none-match': headers['etag']! } });
  assert.equal(again.status, 304);
  assert.equal((await server.request('GET', '/openapi/v3/apis/example.com/v1?hash=')).status, 200);
});

// Compat Writing, P2, yes: kinds that count no generations keep the one they are sent
test('kinds that count no generations keep the one they were sent', async () => {
  const secrets = '/api/v1/namespaces/default/configmaps';
  const body = (name: string, generation: number) => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name, generation },
  });
  assert.equal((await server.request('POST', secrets, { body: body('counted', 7) })).json.metadata.generation, 7);
  assert.equal((await server.request('POST', secrets, { body: body('below', -1) })).status, 422);
});

// S-337
// Compat CustomResourceDefinitions, P2, yes: the first DELETE of a definition ignores the policy and moves no
//   generation
test('the first DELETE of a definition is a step of its own', async () => {
  const GONE = definition({ name: 'gone', spec: { type: 'object' } });
  await establish(server, GONE);
  const path = `${DEFINITIONS}/${GONE.metadata.name}`;
  const body = {
    apiVersion: 'example.com/v1',
    kind: 'Gone',
    metadata: { name: 'held', finalizers: ['example.com/hold'] },
  };
  const gones = '/apis/example.com/v1/namespaces/default/gones';
  assert.equal((await server.request('POST', gones, { body })).status, 201);
  const { json: before } = await server.request('GET', path);
  assert.deepEqual(
    before.metadata.managedFields
      .map(({ fieldsV1 }: { fieldsV1: Record<string, object> }) => fieldsV1['f:status'] ?? fieldsV1['f:spec'])
      .flatMap((part: Record<string, object>) =>
        ['f:names', 'f:acceptedNames', 'f:conditions'].flatMap((key) => Object.keys(part[key] ?? {})),
      )
      .filter((key: string) => key === '.'),
    [],
    'Go cannot leave these out, so nobody comes to own that they are there',
  );
  const { metadata } = (await server.request('DELETE', `${path}?propagationPolicy=Orphan`)).json;
  assert.deepEqual(
    [metadata.generation, metadata.deletionGracePeriodSeconds, metadata.finalizers],
    [
      before.metadata.generation,
      undefined,
      before.metadata.finalizers ?? ['customresourcecleanup.apiextensions.k8s.io'],
    ],
  );
  const second = (await server.request('DELETE', path)).json.metadata;
  assert.deepEqual([second.generation, second.deletionGracePeriodSeconds], [before.metadata.generation + 1, 0]);
  await merge(`${gones}/held`, { metadata: { finalizers: null } });
});
