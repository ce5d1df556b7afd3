/** What is taken with a warning, what is written in its canonical form, what is not shown at all. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { kubevirtResources } from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { type InProcessServer, startServer } from '../testkit/in-process-server.ts';

let server: InProcessServer;
before(async () => {
  server = await startServer({ resources: kubevirtResources() });
});
after(() => server.stop());

const CORE = '/api/v1/namespaces/default';
const map = (metadata: object) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata });

// S-261
test('an update warns of what it leaves odd, and /status does not', async () => {
  const path = `/api/v1/persistentvolumes`;
  const volume = {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name: 'v' },
    spec: {
      capacity: { storage: '1Gi' },
      accessModes: ['ReadWriteOnce'],
      persistentVolumeReclaimPolicy: 'Recycle',
      hostPath: { path: '/x' },
    },
  };
  const warned = /^299 - "spec\.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated\./;
  const created = await server.request('POST', path, { body: volume });
  assert.equal(created.status, 201, created.text);
  assert.match(created.headers['warning'] ?? '', warned);
  const body = { metadata: { labels: { a: 'b' } } };
  const patched = await server.request('PATCH', `${path}/v`, { body });
  assert.match(patched.headers['warning'] ?? '', warned);
  const status = await server.request('PATCH', `${path}/v/status`, { body: { status: { phase: 'Available' } } });
  assert.equal(status.status, 200, status.text);
  assert.equal(status.headers['warning'], undefined);
});

test('a finalizer without a domain: refused for built-in kinds, a warning for others', async () => {
  const refused = await server.request('POST', `${CORE}/configmaps`, { body: map({ name: 'f', finalizers: ['own'] }) });
  assert.equal(refused.status, 422);
  assert.match(refused.json.message, /name is neither a standard finalizer name nor is it fully qualified/);
  for (const name of ['orphan', 'example.com/own']) {
    const body = map({ generateName: 'f-', finalizers: [name] });
    assert.equal((await server.request('POST', `${CORE}/configmaps`, { body })).status, 201, name);
  }
  const body = {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstanceMigration',
    metadata: { name: 'm', finalizers: ['own'] },
    spec: { vmiName: 'v' },
  };
  const path = '/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstancemigrations';
  const warned = await server.request('POST', path, { body });
  assert.equal(warned.status, 201, warned.text);
  assert.match(warned.headers['warning'] ?? '', /prefer a domain-qualified finalizer name/);
});

test('a namespace finalizer needs a domain as well', async () => {
  const body = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'n' }, spec: { finalizers: ['own'] } };
  await server.create('/api/v1/namespaces', { ...body, spec: {} });
  const { status, json } = await server.request('PUT', '/api/v1/namespaces/n/finalize', { body });
  assert.equal(status, 422);
  assert.match(json.message, /spec\.finalizers\[0\]: Invalid value: "own"/);
});

// Compat Writing, P0, yes: uid, creationTimestamp, MicroTime, no selfLink
test('times are shown as the typed API shows them', async () => {
  const path = '/apis/coordination.k8s.io/v1/namespaces/default/leases';
  const body = {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name: 'l' },
    spec: { renewTime: '2026-01-02T03:04:05.000000Z', acquireTime: '2026-01-02T04:04:05.500000+01:00' },
  };
  const { spec } = (await server.request('POST', path, { body })).json;
  assert.deepEqual(spec, { renewTime: '2026-01-02T03:04:05.000000Z', acquireTime: '2026-01-02T03:04:05.500000Z' });
  // Go's form of a MicroTime has six digits, no fewer.
  const short = { ...body, metadata: { name: 's' }, spec: { renewTime: '2026-01-02T03:04:05Z' } };
  const refused = await server.request('POST', path, { body: short });
  assert.equal(refused.status, 400);
  assert.match(refused.json.message, /parsing time "2026-01-02T03:04:05Z" as "2006-01-02T15:04:05\.000000Z07:00"/);
});

test('empty lists and maps of metadata are not shown', async () => {
  const body = map({ name: 'e', labels: {}, annotations: {}, finalizers: [], ownerReferences: [] });
  const { metadata } = (await server.request('POST', `${CORE}/configmaps`, { body })).json;
  assert.deepEqual(
    ['labels', 'annotations', 'finalizers', 'ownerReferences'].filter((field) => field in metadata),
    [],
  );
  await server.request('PATCH', `${CORE}/configmaps/e`, { body: { metadata: { labels: { a: 'b' } } } });
  const bare = await server.request('PATCH', `${CORE}/configmaps/e`, { body: { metadata: { labels: { a: null } } } });
  assert.equal(bare.json.metadata.labels, undefined);
});
