import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { DEFINITIONS, definition } from '../testkit/custom-definitions.ts';
import { type InProcessServer, startServer } from '../testkit/in-process-server.ts';
import { SAMPLES } from './fixtures/samples.ts';

let server: InProcessServer;
const DEPLOYMENTS = '/apis/apps/v1/namespaces/default/deployments';
const deployment = (name: string): object => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name },
  spec: {
    replicas: 2,
    selector: { matchLabels: { app: 'a' } },
    template: { metadata: { labels: { app: 'a' } }, spec: { containers: [{ name: 'c', image: 'i' }] } },
  },
  status: { replicas: 7 },
});

before(async () => {
  server = await startServer();
});
after(() => server.stop());

// S-011: The status subresource and the main endpoint do not write each other's fields; generation moves with the spec.
// Compat Writing, P0, yes: status is written through `/status` and nowhere else
// Compat What is easily got wrong, P0, yes: 10 and 11, spec, status and optimistic locks
test('the main endpoint ignores status, /status ignores the rest', async () => {
  const created = await server.request('POST', DEPLOYMENTS, { body: deployment('walls') });
  assert.equal(created.status, 201, created.text);
  assert.equal(created.json.status?.replicas, undefined);
  const wanted = { ...created.json, spec: { ...created.json.spec, replicas: 9 }, status: { replicas: 3 } };
  const status = await server.request('PUT', `${DEPLOYMENTS}/walls/status`, { body: wanted });
  assert.equal(status.status, 200);
  assert.equal(status.json.status.replicas, 3);
  assert.equal(status.json.spec.replicas, 2);
  assert.equal(status.json.metadata.generation, 1);
  const main = await server.request('PUT', `${DEPLOYMENTS}/walls`, {
    body: { ...status.json, spec: { ...status.json.spec, replicas: 5 }, status: { replicas: 100 } },
  });
  assert.equal(main.json.spec.replicas, 5);
  assert.equal(main.json.status.replicas, 3);
  assert.equal(main.json.metadata.generation, 2);
  const got = await server.request('GET', `${DEPLOYMENTS}/walls/status`);
  assert.equal(got.text, main.text);
});

// S-259
// Compat Writing, P1, yes: a create takes no status, also by apply or by a PUT that creates; a Node keeps that it is
//   registered with
test('a create takes no status, however it is asked for, but that of a node', async (t) => {
  const deployed = (name: string) => ({ ...deployment(name), status: { replicas: 7 } });
  const service = { apiVersion: 'v1', kind: 'Service', metadata: { name: 'put' }, spec: { ports: [{ port: 1 }] } };
  const status = { loadBalancer: { ingress: [{ ip: '1.2.3.4' }] } };
  const capacity = { memory: '1Gi' };
  const cases: [string, 'POST' | 'PUT' | 'PATCH', string, object, string | undefined, unknown][] = [
    ['POST', 'POST', DEPLOYMENTS, deployed('posted'), undefined, undefined],
    [
      'apply',
      'PATCH',
      `${DEPLOYMENTS}/applied?fieldManager=m`,
      deployed('applied'),
      'application/apply-patch+yaml',
      undefined,
    ],
    ['PUT', 'PUT', '/api/v1/namespaces/default/services/put', { ...service, status }, undefined, undefined],
    [
      'POST of a node',
      'POST',
      '/api/v1/nodes',
      { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n' }, status: { capacity } },
      undefined,
      capacity,
    ],
  ];
  for (const [name, method, path, body, type, kept] of cases) {
    await t.test(name, async () => {
      const answer = await server.request(method, path, {
        body,
        ...(type !== undefined && { headers: { 'content-type': type } }),
      });
      assert.equal(answer.status, 201, answer.text);
      const found = answer.json.status ?? {};
      assert.deepEqual(found.capacity, kept);
      assert.equal(found.replicas, undefined);
      assert.deepEqual(found.loadBalancer ?? {}, {});
    });
  }
});

const FLOW_CONTROL = '/apis/flowcontrol.apiserver.k8s.io/v1';
const ofFlowControl = (kind: string, resource: string) => ({
  apiVersion: 'flowcontrol.apiserver.k8s.io/v1',
  kind,
  metadata: { name: 'reported' },
  ...SAMPLES[`${resource}.flowcontrol.apiserver.k8s.io`],
});
const METADATA_THROUGH_STATUS: readonly [string, object, string, boolean][] = [
  [`${FLOW_CONTROL}/flowschemas`, ofFlowControl('FlowSchema', 'flowschemas'), 'reported', false],
  [
    `${FLOW_CONTROL}/prioritylevelconfigurations`,
    ofFlowControl('PriorityLevelConfiguration', 'prioritylevelconfigurations'),
    'reported',
    false,
  ],
  [DEFINITIONS, definition({ name: 'reported' }), 'reporteds.example.com', true],
];
for (const [collection, body, name, taken] of METADATA_THROUGH_STATUS) {
  test(`/status of ${collection} ${taken ? 'takes metadata, and says who has written it' : 'leaves metadata, and nobody is said to have written it'}`, async () => {
    const { kind, apiVersion } = (await server.create(collection, body)) as {
      kind: string;
      apiVersion: string;
    };
    const labels = { reported: 'yes' };
    const patched = await server.request('PATCH', `${collection}/${name}/status`, { body: { metadata: { labels } } });
    assert.equal(patched.status, 200, patched.text);
    assert.deepEqual(patched.json.metadata.labels, taken ? labels : undefined);
    const applied = await server.request('PATCH', `${collection}/${name}/status?fieldManager=teller&force=true`, {
      headers: { 'content-type': 'application/apply-patch+yaml' },
      body: { apiVersion, kind, metadata: { name, labels: { reported: 'again' } } },
    });
    assert.equal(applied.status, 200, applied.text);
    const managers = applied.json.metadata.managedFields.map((entry: { manager: string }) => entry.manager);
    assert.equal(managers.includes('teller'), taken);
  });
}

// S-011
// Compat Writing, P0, yes: generation: which kinds, which changes
test('generation moves with the spec, not with labels; deployments count annotations', async () => {
  await server.request('POST', DEPLOYMENTS, { body: deployment('generations') });
  const patch = async (body: object): Promise<number> =>
    (await server.request('PATCH', `${DEPLOYMENTS}/generations`, { body })).json.metadata.generation;
  assert.equal(await patch({ metadata: { labels: { a: 'b' } } }), 1);
  assert.equal(await patch({ metadata: { annotations: { a: 'b' } } }), 2);
  assert.equal(await patch({ spec: { paused: true } }), 3);
  assert.equal(await patch({ metadata: { generation: 77 } }), 3);
});

test('a resource without status has no /status', async () => {
  const answer = await server.request('GET', '/api/v1/namespaces/default/configmaps/x/status');
  assert.equal(answer.status, 404);
  assert.equal(answer.text, '404 page not found\n');
});

// Compat Writing, P0, yes: `/scale` of built-in kinds
test('/scale shows and changes the replica count only', async () => {
  await server.request('POST', DEPLOYMENTS, { body: deployment('scaled') });
  const { json: scale } = await server.request('GET', `${DEPLOYMENTS}/scaled/scale`);
  assert.equal(scale.kind, 'Scale');
  assert.equal(scale.apiVersion, 'autoscaling/v1');
  assert.deepEqual(scale.spec, { replicas: 2 });
  assert.deepEqual(scale.status, { replicas: 0, selector: 'app=a' });
  const put = await server.request('PUT', `${DEPLOYMENTS}/scaled/scale`, { body: { ...scale, spec: { replicas: 4 } } });
  assert.deepEqual(put.json.spec, { replicas: 4 });
  const stale = await server.request('PUT', `${DEPLOYMENTS}/scaled/scale`, {
    body: { ...scale, spec: { replicas: 5 } },
  });
  assert.equal(stale.status, 409);
  const patched = await server.request('PATCH', `${DEPLOYMENTS}/scaled/scale`, { body: { spec: { replicas: 6 } } });
  assert.deepEqual(patched.json.spec, { replicas: 6 });
  const { json } = await server.request('GET', `${DEPLOYMENTS}/scaled`);
  assert.equal(json.spec.replicas, 6);
  assert.equal(json.metadata.generation, 3);
  const negative = await server.request('PATCH', `${DEPLOYMENTS}/scaled/scale`, { body: { spec: { replicas: -1 } } });
  assert.equal(negative.status, 422);
});

/** Upstream's conformance tests write statuses that hold nothing but their conditions. */
// S-260
test('a status needs no field that Go writes anyway, and a JSON patch reaches below it', async () => {
  const labels = { app: 'a' };
  const template = { metadata: { labels }, spec: { containers: [{ name: 'c', image: 'i' }] } };
  const merge = { 'content-type': 'application/merge-patch+json' };
  const condition = { type: 'StatusUpdate', status: 'True', reason: 'E2E', message: 'Set by a test' };
  for (const [kind, plural] of [
    ['StatefulSet', 'statefulsets'],
    ['DaemonSet', 'daemonsets'],
    ['ReplicaSet', 'replicasets'],
  ]) {
    const path = `/apis/apps/v1/namespaces/default/${plural}`;
    const body = {
      apiVersion: 'apps/v1',
      kind,
      metadata: { name: 'bare' },
      spec: { selector: { matchLabels: labels }, template },
    };
    const created = await server.request('POST', path, { body });
    assert.equal(created.status, 201, created.text);
    const patched = await server.request('PATCH', `${path}/bare/status`, {
      body: { status: { conditions: [condition] } },
      headers: merge,
    });
    assert.equal(patched.status, 200, patched.text);
    assert.deepEqual(patched.json.status.conditions, [{ ...condition, lastTransitionTime: null }]);
  }
  await server.request('POST', DEPLOYMENTS, { body: { ...deployment('fresh'), status: undefined } });
  const added = await server.request('PATCH', `${DEPLOYMENTS}/fresh/status`, {
    body: [{ op: 'add', path: '/status/observedGeneration', value: 1 }],
    headers: { 'content-type': 'application/json-patch+json' },
  });
  assert.equal(added.status, 200, added.text);
  assert.equal(added.json.status.observedGeneration, 1);
  const node = { apiVersion: 'storage.k8s.io/v1', kind: 'CSINode', metadata: { name: 'n' } };
  const csiNode = await server.request('POST', '/apis/storage.k8s.io/v1/csinodes', { body: node });
  assert.equal(csiNode.status, 201, csiNode.text);
  assert.deepEqual(csiNode.json.spec, { drivers: null });
});
