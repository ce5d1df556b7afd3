import assert from 'node:assert/strict';
import { test } from 'node:test';
import { unauthorized } from '../../packages/apimachinery/src/meta/status.ts';
import type { AggregatedApi } from '../../packages/apiserver/src/endpoints/aggregated-api.ts';
import { startServer } from '../testkit/in-process-server.ts';

// S-100
// Compat Status, P0, yes: Forbidden: who cannot do what, where
test('refusals say who cannot do what, where', async (t) => {
  const server = await startServer({
    authenticate: async () => ({ username: 'jane<&>', groups: [] }),
    authorize: () => ({ allowed: false, reason: '' }),
  });
  const cases: [string, string, string][] = [
    [
      'GET',
      '/api/v1/namespaces/default/pods/p',
      'pods "p" is forbidden: User "jane&lt;&amp;&gt;" cannot get resource "pods" in API group "" in the namespace "default"',
    ],
    [
      'GET',
      '/api/v1/pods?watch=true',
      'pods is forbidden: User "jane&lt;&amp;&gt;" cannot watch resource "pods" in API group "" at the cluster scope',
    ],
    [
      'PUT',
      '/apis/apps/v1/namespaces/n/deployments/d/scale',
      'deployments.apps "d" is forbidden: User "jane&lt;&amp;&gt;" cannot update resource "deployments/scale" in API group "apps" in the namespace "n"',
    ],
    ['GET', '/metrics', 'forbidden: User "jane&lt;&amp;&gt;" cannot get path "/metrics"'],
    [
      'GET',
      '/apis/nobody.example/v1/things',
      'things.nobody.example is forbidden: User "jane&lt;&amp;&gt;" cannot list resource "things" in API group "nobody.example" at the cluster scope',
    ],
  ];
  for (const [method, path, message] of cases) {
    await t.test(`${method} ${path}`, async () => {
      const answer = await server.request(method, path);
      assert.equal(answer.status, 403);
      assert.equal(answer.json.reason, 'Forbidden');
      assert.equal(answer.json.message, message);
    });
  }
  await server.stop();
});

// S-100: 401 comes before anything else, 403 before 404; refusals say who cannot do what, where.
// Compat HTTP, P0, yes: 401 before 403, 403 before 404, the body last
test('a bad credential is 401 before anything else', async () => {
  const server = await startServer({
    authenticate: async () => {
      throw unauthorized();
    },
  });
  const answer = await server.request('GET', '/no/such/path');
  assert.equal(answer.status, 401);
  assert.equal(answer.json.message, 'Unauthorized');
  assert.ok(answer.headers['audit-id']);
  await server.stop();
});

test('a list selected by name asks about that name', async () => {
  const asked: string[] = [];
  const server = await startServer({
    authorize: (_, attributes) => {
      asked.push(attributes.type === 'resource' ? `${attributes.verb} ${attributes.name}` : attributes.path);
      return { allowed: true, reason: '' };
    },
  });
  await server.request('GET', '/api/v1/namespaces/default/pods?fieldSelector=metadata.name%3Dp');
  await server.request('PUT', '/apis/coordination.k8s.io/v1/namespaces/default/leases/l', {
    body: { metadata: { name: 'l' } },
  });
  assert.deepEqual(asked, ['list p', 'update l', 'create l']);
  await server.stop();
});

// S-420: A missing right on a subresource of KubeVirt's is a 403 Status of reason Forbidden, in kube-apiserver's words.
// Compat Aggregation, P0, yes: `subresources.kubevirt.io` in this process, in discovery
test('an aggregated API names the right, a refusal is the server’s, and it is discovered', async () => {
  const api: AggregatedApi = {
    group: 'subresources.kubevirt.io',
    versions: ['v1'],
    discovery: [
      { name: 'virtualmachines/start', singularName: '', namespaced: true, kind: 'VirtualMachine', verbs: ['update'] },
    ],
    operations: [],
    async handle(_, user, info, authorize) {
      const decision = await authorize(user, {
        type: 'resource',
        verb: info.verb,
        group: info.group,
        version: info.version,
        resource: info.resource,
        subresource: info.subresource,
        namespace: info.namespace,
        name: info.name,
      });
      return { status: decision.allowed ? 202 : 401, headers: {} };
    },
  };
  const server = await startServer({
    aggregated: [api],
    authorize: (_, attributes) => ({
      allowed: attributes.type === 'path' || attributes.name === 'mine',
      reason: '',
    }),
  });
  const start = (name: string) =>
    server.request('PUT', `/apis/subresources.kubevirt.io/v1/namespaces/n/virtualmachines/${name}/start`);
  assert.equal((await start('mine')).status, 202);
  const denied = await start('other');
  assert.equal(denied.status, 403);
  const list = await server.request('GET', '/apis/subresources.kubevirt.io/v1');
  assert.equal(list.json.resources[0].name, 'virtualmachines/start');
  const groups = await server.request('GET', '/apis');
  assert.ok(groups.json.groups.some((group: { name: string }) => group.name === 'subresources.kubevirt.io'));
  await server.stop();
});

test('a registered subresource gets the decoded body', async () => {
  const server = await startServer({
    subresourceHandlers: new Map([
      ['/serviceaccounts/token', async ({ info, body }) => ({ kind: 'TokenRequest', name: info.name, sent: body })],
    ]),
  });
  const answer = await server.request('POST', '/api/v1/namespaces/default/serviceaccounts/sa/token', {
    body: { spec: {} },
  });
  assert.equal(answer.status, 201);
  const { kind, name, sent } = answer.json;
  assert.deepEqual([kind, name], ['TokenRequest', 'sa']);
  assert.deepEqual(
    [sent.kind, sent.apiVersion, sent.metadata, sent.spec.expirationSeconds],
    ['TokenRequest', 'authentication.k8s.io/v1', { namespace: 'default' }, 3600],
  );
  await server.stop();
});
