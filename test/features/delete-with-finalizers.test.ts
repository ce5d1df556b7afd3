import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { encodeProtobuf, PROTOBUF } from '../../packages/apiserver/src/kinds/protobuf/documents.ts';
import { protobufBody } from '../../packages/apiserver/src/kinds/protobuf/request-body.ts';
import { type InProcessServer, startServer } from '../testkit/in-process-server.ts';

let server: InProcessServer;
before(async () => {
  server = await startServer({ bodyDecoders: new Map([[PROTOBUF, protobufBody]]) });
});
after(() => server.stop());

const CONFIG_MAPS = '/api/v1/namespaces/default/configmaps';
const PODS = '/api/v1/namespaces/default/pods';
const make = (name: string, metadata: object = {}) =>
  server.request('POST', CONFIG_MAPS, {
    body: { kind: 'ConfigMap', apiVersion: 'v1', metadata: { name, ...metadata } },
  });

// Compat Deleting, P0, yes: the answer: a Status, or the object for some kinds
test('DELETE answers with a Status that names what is gone', async () => {
  const { json: created } = await make('plain');
  const { status, json } = await server.request('DELETE', `${CONFIG_MAPS}/plain`);
  assert.equal(status, 200);
  assert.deepEqual(json, {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Success',
    details: { name: 'plain', kind: 'configmaps', uid: created.metadata.uid },
  });
  assert.equal((await server.request('GET', `${CONFIG_MAPS}/plain`)).status, 404);
  assert.equal((await server.request('DELETE', `${CONFIG_MAPS}/plain`)).status, 404);
});

// S-014: Deletion honours finalizers, preconditions, grace periods and propagation policies.
// Compat Writing, P0, yes: taking the last finalizer off deletes in the same request
test('finalizers hold an object until the last one is removed', async () => {
  await make('held', { finalizers: ['example.com/a', 'example.com/b'] });
  const marked = await server.request('DELETE', `${CONFIG_MAPS}/held`);
  assert.equal(marked.status, 200);
  assert.equal(marked.json.kind, 'ConfigMap');
  assert.ok(marked.json.metadata.deletionTimestamp);
  assert.equal(marked.json.metadata.deletionGracePeriodSeconds, 0);
  const again = await server.request('DELETE', `${CONFIG_MAPS}/held`);
  assert.equal(again.json.metadata.resourceVersion, marked.json.metadata.resourceVersion);
  const recreated = await make('held');
  assert.equal(recreated.status, 409);
  assert.equal(recreated.json.message, 'object is being deleted: configmaps "held" already exists');
  const added = await server.request('PATCH', `${CONFIG_MAPS}/held`, {
    body: { metadata: { finalizers: ['example.com/a', 'example.com/b', 'example.com/c'] } },
  });
  assert.equal(added.status, 422);
  assert.match(
    added.json.message,
    /metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted/,
  );
  const one = await server.request('PATCH', `${CONFIG_MAPS}/held`, {
    body: { metadata: { finalizers: ['example.com/b'] } },
  });
  assert.equal(one.status, 200);
  const none = await server.request('PATCH', `${CONFIG_MAPS}/held`, { body: { metadata: { finalizers: null } } });
  assert.equal(none.status, 200);
  assert.equal(none.json.metadata.name, 'held');
  assert.equal((await server.request('GET', `${CONFIG_MAPS}/held`)).status, 404);
});

// S-014
// Compat Deleting, P0, yes: propagation policies; grace periods of Pods
test('a propagation policy becomes a finalizer of the garbage collector', async (t) => {
  const cases: [string, object, string[] | undefined][] = [
    ['Foreground', { propagationPolicy: 'Foreground' }, ['foregroundDeletion']],
    ['Orphan', { propagationPolicy: 'Orphan' }, ['orphan']],
    ['orphanDependents', { orphanDependents: true }, ['orphan']],
    ['Background', { propagationPolicy: 'Background' }, undefined],
  ];
  for (const [name, options, finalizers] of cases) {
    await t.test(name, async () => {
      await make('policy');
      const body = { kind: 'DeleteOptions', apiVersion: 'v1', ...options };
      const { json } = await server.request('DELETE', `${CONFIG_MAPS}/policy`, { body });
      assert.deepEqual(json.metadata.finalizers, finalizers);
      await server.request('PATCH', `${CONFIG_MAPS}/policy`, { body: { metadata: { finalizers: [] } } });
    });
  }
});

// S-014
// Compat Deleting, P0, yes: DeleteOptions in the body (JSON, YAML, protobuf) or the query; preconditions
// Compat Deleting, P1, yes: a precondition that fails names the kind and both values
test('preconditions and options are checked', async (t) => {
  await make('kept');
  const cases: [string, object, number, RegExp][] = [
    [
      'uid',
      { preconditions: { uid: 'other' } },
      409,
      /^Operation cannot be fulfilled on ConfigMap "kept": the UID in the precondition \(other\) does not match the UID in record \(.*\)\. The object might have been deleted and then recreated$/,
    ],
    [
      'resourceVersion',
      { preconditions: { resourceVersion: '1' } },
      409,
      /^Operation cannot be fulfilled on ConfigMap "kept": the ResourceVersion in the precondition \(1\) does not match the ResourceVersion in record \(\d+\)\. The object might have been modified$/,
    ],
    ['policy', { propagationPolicy: 'Sometimes' }, 422, /propagationPolicy: Unsupported value/],
    ['both', { propagationPolicy: 'Orphan', orphanDependents: true }, 422, /cannot be both set/],
    ['type', { gracePeriodSeconds: 'soon' }, 400, /^gracePeriodSeconds: expected int64, got string$/],
    [
      'type of a precondition',
      { preconditions: { uid: 5 } },
      400,
      /^preconditions\.uid: expected string, got number 5$/,
    ],
    [
      'kind',
      { kind: 'ListOptions', apiVersion: 'v1' },
      400,
      /^no kind "ListOptions" is registered for version "v1" in scheme "k8s\.io\/.*\/scheme\/register\.go:27"$/,
    ],
    ['list', [], 400, /^couldn't get version\/kind; json parse error: expected object, got array$/],
    ['of any group', { kind: 'DeleteOptions', apiVersion: 'apps/v1', dryRun: ['All'] }, 200, /^undefined$/],
    ['dryRun', { dryRun: ['All'] }, 200, /^undefined$/],
  ];
  for (const [name, body, status, message] of cases) {
    await t.test(name, async () => {
      const answer = await server.request('DELETE', `${CONFIG_MAPS}/kept`, { body });
      assert.equal(answer.status, status, answer.text);
      assert.match(String(answer.json.message), message);
      assert.equal((await server.request('GET', `${CONFIG_MAPS}/kept`)).status, 200);
    });
  }
});

const pod = (name: string, spec: object = {}): object => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name },
  spec: { containers: [{ name: 'c', image: 'i' }], ...spec },
});
const bind = (name: string) =>
  server.request('POST', `${PODS}/${name}/binding`, {
    body: { apiVersion: 'v1', kind: 'Binding', metadata: { name }, target: { kind: 'Node', name: 'node-1' } },
  });

test('a pod nobody runs goes at once, whatever its grace period', async () => {
  await server.request('POST', PODS, { body: pod('unscheduled') });
  const { status, json } = await server.request('DELETE', `${PODS}/unscheduled`);
  assert.equal(status, 200);
  assert.equal(json.kind, 'Pod');
  assert.equal((await server.request('GET', `${PODS}/unscheduled`)).status, 404);
});

// S-014
test('a bound pod waits for its node to say it is gone', async () => {
  await server.request('POST', PODS, { body: pod('running') });
  const bound = await bind('running');
  assert.equal(bound.status, 201, bound.text);
  assert.equal(bound.json.status, 'Success');
  assert.equal((await bind('running')).status, 409);
  const { json: got } = await server.request('GET', `${PODS}/running`);
  assert.equal(got.spec.nodeName, 'node-1');
  assert.equal(got.status.conditions.find((c: { type: string }) => c.type === 'PodScheduled').status, 'True');
  const marked = await server.request('DELETE', `${PODS}/running`);
  assert.equal(marked.json.metadata.deletionGracePeriodSeconds, 30);
  assert.ok(Date.parse(marked.json.metadata.deletionTimestamp) > Date.now() + 20_000);
  assert.equal(marked.json.metadata.generation, got.metadata.generation + 1);
  const longer = await server.request('DELETE', `${PODS}/running`, { body: { gracePeriodSeconds: 60 } });
  assert.equal(longer.json.metadata.deletionGracePeriodSeconds, 30);
  const shorter = await server.request('DELETE', `${PODS}/running?gracePeriodSeconds=5`);
  assert.equal(shorter.json.metadata.deletionGracePeriodSeconds, 5);
  await server.request('DELETE', `${PODS}/running`, { body: { gracePeriodSeconds: 0 } });
  assert.equal((await server.request('GET', `${PODS}/running`)).status, 404);
});

// Compat What is easily got wrong, P0, yes: 9, status shapes
test('an eviction deletes the pod and answers with a Status', async () => {
  await server.request('POST', PODS, { body: pod('evicted') });
  await bind('evicted');
  const evicted = await server.request('POST', `${PODS}/evicted/eviction`, {
    body: {
      apiVersion: 'policy/v1',
      kind: 'Eviction',
      metadata: { name: 'evicted', namespace: 'default' },
      deleteOptions: { gracePeriodSeconds: 7 },
    },
  });
  assert.equal(evicted.status, 201, evicted.text);
  assert.equal(evicted.json.status, 'Success');
  const { json } = await server.request('GET', `${PODS}/evicted`);
  assert.equal(json.metadata.deletionGracePeriodSeconds, 7);
  const missing = await server.request('POST', `${PODS}/nobody/eviction`, {
    body: { kind: 'Eviction', metadata: { name: 'nobody' } },
  });
  assert.equal(missing.status, 404);
});

// Compat Pods, nodes, drain, P2, yes: `policy/v1beta1` Eviction, in protobuf too
test('an eviction in the beta version is taken, also as a Go client of old writes it', async () => {
  const eviction = { apiVersion: 'policy/v1beta1', kind: 'Eviction', metadata: { name: 'old', namespace: 'default' } };
  for (const headers of [{}, { 'content-type': PROTOBUF }]) {
    await server.request('POST', PODS, { body: pod('old') });
    const body = 'content-type' in headers ? encodeProtobuf(eviction)! : eviction;
    const evicted = await server.request('POST', `${PODS}/old/eviction`, { body, headers });
    assert.equal(evicted.status, 201, evicted.text);
    assert.equal((await server.request('GET', `${PODS}/old`)).status, 404);
  }
});

const template = { metadata: { labels: { a: 'b' } }, spec: { containers: [{ name: 'c', image: 'i' }] } };

for (const { path, kind, apiVersion, spec } of [
  {
    path: '/api/v1/namespaces/default/replicationcontrollers',
    kind: 'ReplicationController',
    apiVersion: 'v1',
    spec: { replicas: 0, selector: { a: 'b' }, template },
  },
  {
    path: '/apis/batch/v1/namespaces/default/jobs',
    kind: 'Job',
    apiVersion: 'batch/v1',
    spec: { template: { spec: { ...template.spec, restartPolicy: 'Never' } } },
  },
]) {
  // Compat Deleting, P1, yes: a DELETE without a policy orphans the Pods of a ReplicationController and of a Job in
  //   batch/v1
  test(`a ${kind} leaves its pods behind unless the delete says otherwise`, async () => {
    const create = async (name: string) => {
      const made = await server.request('POST', path, { body: { apiVersion, kind, metadata: { name }, spec } });
      assert.equal(made.status, 201, made.text);
    };
    await create('left');
    const plain = await server.request('DELETE', `${path}/left`);
    assert.deepEqual(plain.json.metadata.finalizers, ['orphan']);
    const again = await server.request('DELETE', `${path}/left?propagationPolicy=Background`);
    assert.equal(again.json.status, 'Success');
    await create('one');
    await server.request('DELETE', path);
    assert.deepEqual((await server.request('GET', `${path}/one`)).json.metadata.finalizers, ['orphan']);
    await server.request('DELETE', `${path}/one?orphanDependents=false`);
    assert.equal((await server.request('GET', `${path}/one`)).status, 404);
  });
}

// Compat Deleting, P0, yes: deletecollection: selectors, the list of what went
test('deleting a collection takes what the selector chooses', async () => {
  await make('c1', { labels: { go: 'yes' } });
  await make('c2', { labels: { go: 'yes' }, finalizers: ['example.com/hold'] });
  await make('c3', { labels: { go: 'no' } });
  const { status, json } = await server.request('DELETE', `${CONFIG_MAPS}?labelSelector=go%3Dyes`);
  assert.equal(status, 200);
  assert.equal(json.kind, 'ConfigMapList');
  assert.deepEqual(
    json.items.map((item: { metadata: { name: string } }) => item.metadata.name),
    ['c1', 'c2'],
  );
  assert.equal((await server.request('GET', `${CONFIG_MAPS}/c1`)).status, 404);
  assert.ok((await server.request('GET', `${CONFIG_MAPS}/c2`)).json.metadata.deletionTimestamp);
  assert.equal((await server.request('GET', `${CONFIG_MAPS}/c3`)).json.metadata.deletionTimestamp, undefined);
});
