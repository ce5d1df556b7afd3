import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type InProcessServer, startServer } from '../testkit/in-process-server.ts';

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
