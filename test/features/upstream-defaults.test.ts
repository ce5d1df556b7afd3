/** What new objects are given by upstream's strategies, and what an object that is sent once more is answered. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type InProcessServer, startServer } from '../testkit/in-process-server.ts';

const JOBS = '/apis/batch/v1/namespaces/default/jobs';
let server: InProcessServer;
before(async () => {
  server = await startServer();
});
after(() => server.stop());

const send = async (method: string, path: string, body?: object, status = method === 'POST' ? 201 : 200) => {
  const answer = await server.request(method, path, { ...(body && { body }) });
  assert.equal(answer.status, status, answer.text);
  return answer.json;
};
const pods = { restartPolicy: 'Never', containers: [{ name: 'c', image: 'x' }] };
const job = (name: string, spec: object = {}, labels?: object, own?: object) => ({
  apiVersion: 'batch/v1',
  kind: 'Job',
  metadata: { name, ...(own && { labels: own }) },
  spec: { template: { ...(labels && { metadata: { labels } }), spec: pods }, ...spec },
});
const generated = (name: string, uid: string) => ({
  'controller-uid': uid,
  'job-name': name,
  'batch.kubernetes.io/controller-uid': uid,
  'batch.kubernetes.io/job-name': name,
});

// S-352: Workloads get the defaults that upstream gives them, and keep their generation when nothing changes.
// Compat Types, P1, yes: what new Jobs, namespaces and workloads are given: selectors, labels, finalizers, defaults of
//   Pods apart from those of templates
test('a new Job selects its Pods by its uid, whatever its selector says already', async () => {
  for (const [name, spec, labels, own, shown] of [
    ['plain', {}, undefined, undefined, {}],
    ['labelled', {}, { a: 'b' }, undefined, { a: 'b' }],
    ['named', {}, { a: 'b' }, { a: 'b' }, undefined],
    ['empty', { selector: {} }, undefined, undefined, {}],
  ] as const) {
    const { metadata, spec: made } = await send('POST', JOBS, job(name, spec, labels, own));
    const wanted = generated(name, metadata.uid);
    assert.deepEqual(made.selector, { matchLabels: { 'batch.kubernetes.io/controller-uid': metadata.uid } });
    assert.deepEqual(made.template.metadata.labels, { ...wanted, ...labels });
    assert.deepEqual(metadata.labels, shown ? { ...wanted, ...shown } : own, name);
    assert.equal(made.manualSelector, false);
    assert.equal(metadata.generation, 1);
  }
  const selector = { matchLabels: { a: 'b' } };
  const own = await send('POST', JOBS, job('manual', { selector, manualSelector: true }, { a: 'b' }));
  assert.deepEqual([own.spec.selector, own.metadata.labels], [selector, { a: 'b' }]);
});

test('a namespace that names what has to end before it ends by the namespace controller too', async () => {
  const made = await send('POST', '/api/v1/namespaces', { metadata: { name: 'n' }, spec: { finalizers: ['a.b/c'] } });
  assert.deepEqual(made.spec.finalizers, ['a.b/c', 'kubernetes']);
});

test('a node is not configured through the API any more', async () => {
  const configSource = { configMap: { name: 'c', namespace: 'n', kubeletConfigKey: 'k' } };
  const made = await send('POST', '/api/v1/nodes', {
    metadata: { name: 'n' },
    spec: { configSource, podCIDR: '10.1.0.0/24' },
  });
  assert.deepEqual(made.spec, { podCIDR: '10.1.0.0/24', podCIDRs: ['10.1.0.0/24'] });
  assert.equal((await send('PATCH', '/api/v1/nodes/n', { spec: { configSource } })).spec.configSource, undefined);
});

// S-352
test('a workload needs a selector', async () => {
  const body = {
    metadata: { name: 'w' },
    spec: { template: { metadata: { labels: { a: 'b' } }, spec: { containers: pods.containers } } },
  };
  for (const resource of ['deployments', 'replicasets', 'statefulsets', 'daemonsets']) {
    const { details } = await send('POST', `/apis/apps/v1/namespaces/default/${resource}`, body, 422);
    const causes: { field: string; message: string }[] = details.causes;
    assert.deepEqual(
      causes.map(({ field, message }) => `${field}: ${message}`),
      ['spec.selector: Required value'],
      resource,
    );
  }
});

test('no claim has less than nothing', async () => {
  const claims = '/api/v1/namespaces/default/persistentvolumeclaims';
  const spec = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } };
  await send('POST', claims, { metadata: { name: 'c' }, spec });
  const { message } = await send('PATCH', `${claims}/c/status`, { status: { capacity: { storage: '-1' } } }, 422);
  assert.match(message, /: status\.capacity\[storage\]: Invalid value: -1: must be a valid resource quantity$/);
});

test('labels of slices count, and a priority class is of one generation for ever', async () => {
  const slices = '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices';
  const slice = await send('POST', slices, { metadata: { name: 's' }, addressType: 'IPv4', endpoints: [] });
  const labelled = await send('PATCH', `${slices}/s`, { metadata: { labels: { a: 'b' } } });
  const noted = await send('PATCH', `${slices}/s`, { metadata: { annotations: { a: 'b' } } });
  assert.deepEqual(
    [slice, labelled, noted].map(({ metadata }) => metadata.generation),
    [1, 2, 2],
  );
  const classes = '/apis/scheduling.k8s.io/v1/priorityclasses';
  await send('POST', classes, { metadata: { name: 'c' }, value: 1 });
  assert.equal((await send('PATCH', `${classes}/c`, { description: 'd' })).metadata.generation, 1);
});
