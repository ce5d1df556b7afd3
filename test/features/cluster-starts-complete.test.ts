import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { cloneJson } from '../../packages/apimachinery/src/meta/deep-clone.ts';
import type { UnstructuredObject } from '../../packages/apimachinery/src/meta/object.ts';
import { storagePrefix } from '../../packages/apimachinery/src/types/resource.ts';
import { ensureBootstrapObjects } from '../../packages/apiserver/src/registry/bootstrap-objects.ts';
import { createMemoryBackend } from '../../packages/apiserver/src/storage/memory-backend.ts';
import { type InProcessServer, startServer } from '../testkit/in-process-server.ts';

let server: InProcessServer;
before(async () => {
  server = await startServer();
});
after(() => server.stop());

const items = async (path: string): Promise<UnstructuredObject[]> => (await server.request('GET', path)).json.items;
const names = async (path: string): Promise<string[]> => (await items(path)).map(({ metadata }) => metadata.name!);

interface Conditions {
  status: { conditions: { type: string; status: string; reason: string }[] };
}

// S-133: A fresh control plane has the objects tools look for: API services, flow schemas, the range of Service
//   addresses, the `kubernetes` Service.
// Compat Bootstrap objects, controllers, events, leases, P0, yes: namespaces, `kubernetes` Service, its endpoints,
//   ServiceCIDR, APIServices before readyz
test('every served group and version has an APIService that is available', async () => {
  const found = (await items('/apis/apiregistration.k8s.io/v1/apiservices')) as (UnstructuredObject & Conditions)[];
  const served = new Set(server.catalog.all().map(({ group, version }) => `${version}.${group}`));
  served.delete('v1.apiregistration.k8s.io');
  assert.deepEqual(found.map(({ metadata }) => metadata.name).sort(), [...served].sort());
  for (const { status } of found) {
    const [{ type, status: value, reason } = { type: '', status: '', reason: '' }] = status.conditions;
    assert.deepEqual([type, value, reason], ['Available', 'True', 'Local']);
  }
});

// S-133
test('flow schemas and the priority levels they name are there', async () => {
  const root = '/apis/flowcontrol.apiserver.k8s.io/v1';
  const levels = new Set(await names(`${root}/prioritylevelconfigurations`));
  const schemas = (await items(`${root}/flowschemas`)) as (UnstructuredObject & {
    spec: { matchingPrecedence: number; priorityLevelConfiguration: { name: string } };
  })[];
  for (const level of ['exempt', 'catch-all', 'system', 'leader-election', 'workload-low', 'global-default']) {
    assert.ok(levels.has(level), level);
  }
  for (const { spec } of schemas) assert.ok(levels.has(spec.priorityLevelConfiguration.name));
  const precedence = Object.fromEntries(schemas.map(({ metadata, spec }) => [metadata.name, spec.matchingPrecedence]));
  assert.deepEqual(
    [precedence['exempt'], precedence['service-accounts'], precedence['global-default'], precedence['catch-all']],
    [1, 9000, 9900, 10_000],
  );
});

// S-349: The mandatory flow schemas and levels are as they have to be, whatever an older store holds.
test('flow control that has to be as it is is put right at the next start, and what a user may change stays', async (t) => {
  const backend = createMemoryBackend();
  const changed: [resource: string, name: string, change: (spec: Record<string, unknown>) => void][] = [
    ['flowschemas', 'catch-all', (spec) => Object.assign(spec, { matchingPrecedence: 9000 })],
    ['flowschemas', 'exempt', (spec) => Object.assign(spec, { matchingPrecedence: 7 })],
    ['flowschemas', 'global-default', (spec) => Object.assign(spec, { matchingPrecedence: 8000 })],
    ['prioritylevelconfigurations', 'catch-all', (spec) => Object.assign(spec, { type: 'Exempt' })],
    ['prioritylevelconfigurations', 'exempt', (spec) => Object.assign(spec, { exempt: { lendablePercent: 50 } })],
  ];
  const root = 'flowcontrol.apiserver.k8s.io';
  const first = await startServer({ backend });
  for (const [resource, name, change] of changed) {
    const info = first.catalog.lookup(root, 'v1', resource)!;
    await first.store.write({ prefix: storagePrefix(info), namespace: '', name }, (current) => {
      const object = cloneJson(current!.object) as UnstructuredObject & { spec: Record<string, unknown> };
      change(object.spec);
      return { type: 'put', object };
    });
  }
  await first.stop();
  const second = await startServer({ backend });
  t.after(() => second.stop());
  const specs = [];
  for (const [resource, name] of changed) {
    const { spec } = (await second.request('GET', `/apis/${root}/v1/${resource}/${name}`)).json;
    specs.push(spec.matchingPrecedence ?? [spec.type, spec.exempt?.lendablePercent]);
  }
  assert.deepEqual(specs, [10_000, 1, 8000, ['Limited', undefined], ['Exempt', 50]]);
});

// S-133
test('the range of cluster IPs is ready and its first address taken', async () => {
  const [cidr] = (await items('/apis/networking.k8s.io/v1/servicecidrs')) as (UnstructuredObject & Conditions)[];
  assert.equal(cidr?.metadata.name, 'kubernetes');
  assert.equal(cidr?.status.conditions[0]?.status, 'True');
  assert.deepEqual(await names('/apis/networking.k8s.io/v1/ipaddresses'), ['10.96.0.1']);
});

test('the address of the kubernetes Service follows the server, what users changed stays', async () => {
  const { registry } = server.server;
  const start = (port: number) =>
    ensureBootstrapObjects(registry, { resources: server.catalog, advertise: { address: '127.0.0.1', port } });
  assert.equal(await start(1111), 3);
  const class_ = '/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations/workload-low';
  await server.request('PATCH', class_, { body: { spec: { limited: { nominalConcurrencyShares: 7 } } } });
  assert.equal(await start(2222), 0);
  const endpoints = await server.request('GET', '/api/v1/namespaces/default/endpoints/kubernetes');
  assert.equal(endpoints.json.subsets[0].ports[0].port, 2222);
  const slice = '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes';
  assert.equal((await server.request('GET', slice)).json.ports[0].port, 2222);
  assert.equal((await server.request('GET', class_)).json.spec.limited.nominalConcurrencyShares, 7);
  const revision = server.store.revision();
  await start(2222);
  assert.equal(server.store.revision(), revision);
});

test('what is made of a name or uid is there although the server made both', async () => {
  const body = { apiVersion: 'v1', kind: 'Namespace', metadata: { generateName: 'made-' } };
  const { metadata } = (await server.request('POST', '/api/v1/namespaces', { body })).json;
  assert.equal(metadata.labels['kubernetes.io/metadata.name'], metadata.name);
  const job = {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { generateName: 'job-' },
    spec: { template: { spec: { restartPolicy: 'Never', containers: [{ name: 'c', image: 'i' }] } } },
  };
  const created = (await server.request('POST', '/apis/batch/v1/namespaces/default/jobs', { body: job })).json;
  assert.deepEqual(created.spec.selector.matchLabels, { 'batch.kubernetes.io/controller-uid': created.metadata.uid });
  assert.equal(created.spec.template.metadata.labels['job-name'], created.metadata.name);
  const path = `/apis/batch/v1/namespaces/default/jobs/${created.metadata.name}`;
  assert.equal((await server.request('PATCH', path, { body: { metadata: { labels: { a: 'b' } } } })).status, 200);
});

test('a collection cannot be replaced or patched', async () => {
  for (const method of ['PUT', 'PATCH']) {
    const { status, json } = await server.request(method, '/api/v1/namespaces/default/configmaps', { body: {} });
    assert.deepEqual([status, json.reason], [405, 'MethodNotAllowed']);
  }
});

test('a field manager that cannot be printed is refused', async () => {
  const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'x' } };
  const path = '/api/v1/namespaces/default/configmaps?fieldManager=a%00b';
  const { status, json } = await server.request('POST', path, { body });
  assert.equal(status, 422);
  assert.match(json.message, /fieldManager: Invalid value: .*invalid character U\+[0-9A-F]{4} \(at position \d+\)/);
});
