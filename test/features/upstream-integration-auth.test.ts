/** What upstream's integration tests of tokens and Pods assert (test/integration/auth, test/integration/pods). */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { KubeObject } from '../../packages/apimachinery/src/meta/object.ts';
import { type InProcessServer, startServer } from '../testkit/in-process-server.ts';

let server: InProcessServer;
before(async () => {
  server = await startServer({ defaultAdmission: true });
  await server.create('/api/v1/namespaces/default/serviceaccounts', {
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: { name: 'default' },
  });
});
after(() => server.stop());

const node = (name: string, labels: Record<string, string>) =>
  server.create('/api/v1/nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name, labels } });
const PODS = '/api/v1/namespaces/default/pods';
const pod = (name: string, spec: object = {}, labels?: Record<string, string>) =>
  server.create(PODS, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, ...(labels && { labels }) },
    spec: { containers: [{ name: 'c', image: 'i' }], ...spec },
  } as KubeObject);
const ZONE = 'topology.kubernetes.io/zone';
const REGION = 'topology.kubernetes.io/region';

test('a Pod gets the zone and the region of its node as labels', async () => {
  await node('here', {
    [ZONE]: 'z',
    [REGION]: 'r',
    'topology.kubernetes.io/abc': '456',
    'sub.topology.kubernetes.io/zone': 's',
  });
  await pod('bound', {}, { [ZONE]: 'bad', 'topology.kubernetes.io/abc': '123' });
  const body = { metadata: { name: 'bound' }, target: { kind: 'Node', name: 'here' } };
  assert.equal((await server.request('POST', `${PODS}/bound/binding`, { body })).status, 201);
  const { metadata } = (await server.request('GET', `${PODS}/bound`)).json;
  assert.deepEqual(metadata.labels, { [ZONE]: 'z', [REGION]: 'r', 'topology.kubernetes.io/abc': '123' });
});

test('so does one that is created on a node; a node that nobody knows adds nothing', async () => {
  assert.deepEqual((await pod('placed', { nodeName: 'here' })).metadata.labels, { [ZONE]: 'z', [REGION]: 'r' });
  assert.equal((await pod('lost', { nodeName: 'nowhere' })).metadata.labels, undefined);
});

test('ephemeral containers: names of their own, a target that is there, nothing that guarantees something', async () => {
  await pod('debugged');
  const patch = async (container: object): Promise<string> => {
    const body = { spec: { ephemeralContainers: [{ name: 'd', image: 'i', ...container }] } };
    const headers = { 'content-type': 'application/strategic-merge-patch+json' };
    return (await server.request('PATCH', `${PODS}/debugged/ephemeralcontainers?dryRun=All`, { body, headers })).json
      .message;
  };
  const at = 'Pod "debugged" is invalid: spec.ephemeralContainers[0]';
  assert.equal(await patch({}), undefined);
  assert.equal(await patch({ name: 'c' }), `${at}.name: Duplicate value: "c"`);
  assert.equal(await patch({ targetContainerName: 'x' }), `${at}.targetContainerName: Not found: "x"`);
  assert.equal(
    await patch({ ports: [{ containerPort: 80 }] }),
    `${at}.ports: Forbidden: cannot be set for an Ephemeral Container`,
  );
});

test('a mistake is reported once, in the words of the kind', async () => {
  const refused = async (path: string, body: object): Promise<string> =>
    (await server.request('POST', path, { body: { metadata: { name: 'x' }, ...body } })).json.message;
  const rbac = '/apis/rbac.authorization.k8s.io/v1/namespaces/default';
  assert.equal(
    await refused(`${rbac}/roles`, { rules: [{ apiGroups: [''], resources: ['pods'] }] }),
    'Role.rbac.authorization.k8s.io "x" is invalid: rules[0].verbs: Required value: verbs must contain at least one value',
  );
  assert.equal(
    await refused(`${rbac}/rolebindings`, {}),
    'RoleBinding.rbac.authorization.k8s.io "x" is invalid: [roleRef.apiGroup: Unsupported value: "": supported values: "rbac.authorization.k8s.io", roleRef.kind: Unsupported value: "": supported values: "ClusterRole", "Role", roleRef.name: Required value]',
  );
  assert.equal(
    await refused('/api/v1/namespaces/default/services', { spec: { ports: [{}] } }),
    'Service "x" is invalid: [spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive, spec.ports[0].targetPort: Invalid value: 0: must be between 1 and 65535, inclusive]',
  );
});
