import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type InProcessServer, startServer } from '../testkit/in-process-server.ts';

let server: InProcessServer;
before(async () => {
  server = await startServer();
});
after(() => server.stop());

const make = (name: string) =>
  server.request('POST', '/api/v1/namespaces', { body: { apiVersion: 'v1', kind: 'Namespace', metadata: { name } } });

test('the system namespaces and the kubernetes Service are there from the start', async () => {
  const { json } = await server.request('GET', '/api/v1/namespaces');
  const names = json.items.map((item: { metadata: { name: string } }) => item.metadata.name);
  assert.deepEqual(names, ['default', 'kube-node-lease', 'kube-public', 'kube-system']);
  const service = await server.request('GET', '/api/v1/namespaces/default/services/kubernetes');
  assert.equal(service.json.spec.ports[0].port, 443);
  assert.equal(
    (await server.request('GET', '/apis/scheduling.k8s.io/v1/priorityclasses/system-node-critical')).json.value,
    2000001000,
  );
});

test('a namespace is active, labelled with its name and held by its own finalizer', async () => {
  const { status, json } = await make('fresh');
  assert.equal(status, 201);
  assert.equal(json.metadata.labels['kubernetes.io/metadata.name'], 'fresh');
  assert.deepEqual(json.spec.finalizers, ['kubernetes']);
  assert.equal(json.status.phase, 'Active');
});

// S-016
// S-441
// Compat Status, P0, yes: NamespaceTerminating as a cause of 403
// Compat Deleting, P0, yes: a namespace ends through `/finalize`
// Compat What is easily got wrong, P0, yes: 15, finalizers and namespaces
test('deleting a namespace ends in three steps: marked, emptied, finalised', async () => {
  await make('leaving');
  const marked = await server.request('DELETE', '/api/v1/namespaces/leaving');
  assert.equal(marked.status, 200);
  assert.equal(marked.json.status.phase, 'Terminating');
  assert.ok(marked.json.metadata.deletionTimestamp);
  assert.equal('deletionGracePeriodSeconds' in marked.json.metadata, false);

  const refused = await server.request('POST', '/api/v1/namespaces/leaving/configmaps', {
    body: { metadata: { name: 'late' } },
  });
  assert.equal(refused.status, 403);
  assert.equal(refused.json.details.causes[0].reason, 'NamespaceTerminating');
  assert.match(
    refused.json.message,
    /unable to create new content in namespace leaving because it is being terminated/,
  );

  const kept = await server.request('PUT', '/api/v1/namespaces/leaving', {
    body: { ...marked.json, spec: { finalizers: [] } },
  });
  assert.deepEqual(kept.json.spec.finalizers, ['kubernetes']);

  const done = await server.request('PUT', '/api/v1/namespaces/leaving/finalize', {
    body: { ...marked.json, spec: { finalizers: [] } },
  });
  assert.equal(done.status, 200, done.text);
  assert.equal((await server.request('GET', '/api/v1/namespaces/leaving')).status, 404);
});

// Compat Admission and quota, P0, yes: NamespaceLifecycle
test('the namespaces of the system stay', async () => {
  for (const name of ['default', 'kube-system', 'kube-public']) {
    const { status, json } = await server.request('DELETE', `/api/v1/namespaces/${name}`);
    assert.equal(status, 403);
    assert.match(json.message, /this namespace may not be deleted/);
  }
});

test('labels written through /status of a namespace stick', async () => {
  const { json: created } = await make('labelled');
  const { json } = await server.request('PATCH', '/api/v1/namespaces/labelled/status', {
    body: { metadata: { annotations: { touched: 'yes' } }, status: { conditions: [{ type: 'X', status: 'True' }] } },
  });
  assert.equal(json.metadata.annotations.touched, 'yes');
  assert.equal(json.status.conditions[0].type, 'X');
  assert.equal(json.metadata.uid, created.metadata.uid);
});
