/** A Pod that a tenant makes with a launcher's label and owner starts no guest: only KubeVirt's controllers make launchers. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { launcherPodsPolicy } from '../../packages/coracle/src/compose/launcher-pods-policy.ts';
import { startPlane, type TestPlane } from '../testkit/control-plane.ts';
import { eventually } from '../testkit/eventually.ts';
import { startServer } from '../testkit/in-process-server.ts';

const NAMESPACE = '/api/v1/namespaces/default';
const PODS = `${NAMESPACE}/pods`;
const INSTANCES = '/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstances';
let plane: TestPlane;
let uid: string;
before(async () => {
  plane = await startPlane();
  await plane.admin(`POST ${NAMESPACE}/serviceaccounts`, {
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: { name: 'default' },
  });
  await plane.admin('POST /apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings', {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'RoleBinding',
    metadata: { name: 'tenant' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'admin' },
    subjects: [{ kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name: 'tenant' }],
  });
  const vmi = await plane.admin(`POST ${INSTANCES}`, {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { name: 'vm' },
    spec: { domain: { devices: {}, memory: { guest: '64Gi' } } },
  });
  uid = vmi.metadata.uid;
});
after(() => plane.stop());

const tenant = { as: ['tenant', 'system:authenticated'] as const };
const owner = (more: object = {}) => [
  { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachineInstance', name: 'vm', uid, controller: true, ...more },
];
const labels = () => ({ 'kubevirt.io': 'virt-launcher', 'kubevirt.io/created-by': uid });
const pod = (name: string, metadata: object, spec: object = {}) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, ...metadata },
  spec: { containers: [{ name: 'compute', image: 'i', resources: { requests: { memory: '1Mi' } } }], ...spec },
});
const REFUSED = /only KubeVirt's controllers make launcher pods, of virtual machine instance "vm"/;

// S-459: Launcher Pods come from KubeVirt's controllers alone: nobody else makes one, or makes a Pod into one, whatever
//   its requests or its node.
for (const [what, more, spec] of [
  ['with next to no requests', {}, {}],
  ['bound to a node', {}, { nodeName: 'n1' }],
  ['as the target of a migration', { 'kubevirt.io/migrationJobUID': 'm' }, {}],
] as const)
  test(`a launcher made by hand ${what} is refused`, async () => {
    const body = pod('fake', { labels: { ...labels(), ...more }, ownerReferences: owner() }, spec);
    const { status, json } = await plane.ask(`POST ${PODS}`, { ...tenant, body });
    assert.equal(status, 403, JSON.stringify(json));
    assert.match(json.message, REFUSED);
  });

// S-459
test('what is no launcher yet does not become one: by its label, its owner, or another instance', async () => {
  const ask = async (line: string, body: object) => (await plane.ask(line, { ...tenant, body })).status;
  assert.equal(await ask(`POST ${PODS}`, pod('owned', { ownerReferences: owner() })), 201);
  assert.equal(await ask(`PATCH ${PODS}/owned`, { metadata: { labels: labels() } }), 403);
  assert.equal(await ask(`PATCH ${PODS}/owned`, { metadata: { labels: { a: 'b' } } }), 200);
  assert.equal(await ask(`POST ${PODS}`, pod('labelled', { labels: labels() })), 201);
  assert.equal(await ask(`PATCH ${PODS}/labelled`, { metadata: { ownerReferences: owner() } }), 403);
  assert.equal(
    await ask(`PATCH ${PODS}/labelled`, { metadata: { ownerReferences: owner({ controller: false }) } }),
    200,
  );
});

// S-459
// S-828: Nobody but KubeVirt's controllers resizes a launcher Pod, here and on external clusters.
test('the controllers make theirs, whose other labels stay the tenant’s to change', async () => {
  await plane.run(['vmi'], { rootCa: '' });
  const launchers = async () =>
    (await plane.admin(`GET ${PODS}`)).items.filter(({ metadata }: { metadata: { name: string } }) =>
      metadata.name.startsWith('virt-launcher-vm-'),
    );
  await eventually(async () => (await launchers()).length === 1);
  const [{ metadata, spec }] = await launchers();
  const { requests } = spec.containers.find(({ name }: { name: string }) => name === 'compute').resources;
  assert.ok(/G|M/.test(requests.memory), requests.memory);
  const change = (body: object) => plane.ask(`PATCH ${PODS}/${metadata.name}`, { ...tenant, body });
  assert.equal((await change({ metadata: { labels: { a: 'b' } } })).status, 200);
  const taken = await change({ metadata: { labels: { 'kubevirt.io/migrationJobUID': 'm' } } });
  assert.equal(taken.status, 403);
  // Whoever may resize Pods, because somebody gave him that right, does not make a launcher smaller than its guest.
  await plane.admin('POST /apis/rbac.authorization.k8s.io/v1/namespaces/default/roles', {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'Role',
    metadata: { name: 'resizer' },
    rules: [{ apiGroups: [''], resources: ['pods/resize'], verbs: ['patch', 'update'] }],
  });
  await plane.admin('POST /apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings', {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'RoleBinding',
    metadata: { name: 'resizer' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'resizer' },
    subjects: [{ kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name: 'tenant' }],
  });
  const containers = spec.containers.map((one: { name: string; resources: { requests: object } }) =>
    one.name === 'compute'
      ? { ...one, resources: { ...one.resources, requests: { ...one.resources.requests, memory: '1Mi' } } }
      : one,
  );
  const shrunk = await plane.ask(`PATCH ${PODS}/${metadata.name}/resize`, {
    ...tenant,
    body: { spec: { containers } },
  });
  assert.equal(shrunk.status, 403, JSON.stringify(shrunk.json));
  assert.match(shrunk.json.message, /only KubeVirt's controllers resize launcher pods/);
});

// S-828
// S-692: On external clusters, too, a Pod made by hand starts no guest that the controllers did not ask for.
test('on an external cluster the policy of coracle rbac refuses the same', async () => {
  const groups = ({ username }: { username: string }) => [
    'system:authenticated',
    ...(username === 'root' ? ['system:masters'] : []),
  ];
  const other = await startServer({
    authenticate: async ({ headers }) => {
      const username = headers['x-user'] ?? 'root';
      return { username, groups: groups({ username }) };
    },
  });
  try {
    for (const manifest of launcherPodsPolicy({})) {
      const plural = manifest.kind === 'ValidatingAdmissionPolicy' ? 'policies' : 'policybindings';
      const path = `/apis/admissionregistration.k8s.io/v1/validatingadmission${plural}`;
      const made = await other.request('POST', path, { body: manifest });
      assert.equal(made.status, 201, made.text);
    }
    const ask = async (user: string, method: string, path: string, body: object): Promise<[number, string]> => {
      const { status, json } = await other.request(method, path, { body, headers: { 'x-user': user } });
      return [status, json.message ?? ''];
    };
    const fake = (name: string, more: object = {}, spec: object = {}) =>
      pod(name, { labels: { ...labels(), ...more }, ownerReferences: owner() }, spec);
    const bodies = [fake('a'), fake('b', {}, { nodeName: 'n1' }), fake('c', { 'kubevirt.io/migrationJobUID': 'm' })];
    for (const body of bodies) {
      const [status, message] = await ask('tenant', 'POST', PODS, body);
      assert.equal(status, 403);
      assert.match(message, /only KubeVirt's controllers make launcher pods/);
    }
    assert.equal((await ask('tenant', 'POST', PODS, pod('plain', {})))[0], 201);
    assert.equal((await ask('tenant', 'POST', PODS, pod('owned', { ownerReferences: owner() })))[0], 201);
    assert.equal((await ask('tenant', 'PATCH', `${PODS}/owned`, { metadata: { labels: labels() } }))[0], 403);
    const controller = 'system:serviceaccount:kubevirt:kubevirt-controller';
    assert.equal((await ask(controller, 'POST', PODS, fake('real')))[0], 201);
    assert.equal((await ask('tenant', 'PATCH', `${PODS}/real`, { metadata: { labels: { a: 'b' } } }))[0], 200);
    const taken = { metadata: { labels: { 'kubevirt.io/migrationJobUID': 'm' } } };
    assert.equal((await ask('tenant', 'PATCH', `${PODS}/real`, taken))[0], 403);
    assert.equal((await ask('root', 'POST', PODS, fake('by-root')))[0], 201);
    const size = (memory: string) => ({
      spec: { containers: [{ name: 'compute', image: 'i', resources: { requests: { memory } } }] },
    });
    assert.equal((await ask('tenant', 'PATCH', `${PODS}/real/resize`, size('2Mi')))[0], 403);
    assert.equal((await ask(controller, 'PATCH', `${PODS}/real/resize`, size('2Mi')))[0], 200);
    assert.equal((await ask('tenant', 'PATCH', `${PODS}/plain/resize`, size('2Mi')))[0], 200);
  } finally {
    await other.stop();
  }
});
