/**
 * An instance has no status subresource, as upstream: its status is a part of the object, which KubeVirt's own accounts
 * write and nobody else. What upstream's programs send is imitated to the member: PUT of the whole with the nulls that
 * Go writes, and JSON patches that test what was read.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { commit } from '../../packages/client/src/commit/commit.ts';
import { instanceStatusPolicy } from '../../packages/coracle/src/compose/instance-status-policy.ts';
import { VIRTUAL_MACHINE_INSTANCES, type VirtualMachineInstance } from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { type InProcessControlPlane, startInProcess } from '../testkit/in-process-control-plane.ts';

const INSTANCES = '/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstances';
const JSON_PATCH = 'application/json-patch+json';
const MERGE_PATCH = 'application/merge-patch+json';
const APPLY_PATCH = 'application/apply-patch+yaml';
const of = (account: string, namespace = 'kubevirt') =>
  [`system:serviceaccount:${namespace}:${account}`, 'system:masters'] as const;
const NODE = ['system:node:n1', 'system:nodes'] as const;

let server: InProcessControlPlane;
before(async () => {
  server = await startInProcess({
    agentRules: [
      { apiGroups: ['kubevirt.io'], resources: ['virtualmachineinstances'], verbs: ['get', 'list', 'watch', 'patch'] },
    ],
  });
});
after(() => server.stop());

let made = 0;
// biome-ignore lint/suspicious/noExplicitAny: read field by field.
async function create(status?: object): Promise<any> {
  const { status: code, json } = await server.send('POST', INSTANCES, {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { name: `vmi-${++made}`, creationTimestamp: null },
    spec: { domain: { devices: {}, memory: { guest: '64Mi' }, resources: {} } },
    ...(status && { status }),
  });
  assert.equal(code, 201, JSON.stringify(json));
  return json;
}
const ready = (status: string) => ({ type: 'Ready', status, lastProbeTime: null, lastTransitionTime: null });

// S-415
test('there is no /status: not in discovery, not as a route, not in the definition; other kinds have theirs', async () => {
  const { metadata } = await create();
  const { json } = await server.send('GET', '/apis/kubevirt.io/v1');
  const below = json.resources.map(({ name }: { name: string }) => name).filter((name: string) => name.includes('/'));
  assert.deepEqual(below.sort(), [
    'kubevirts/status',
    'virtualmachineinstancemigrations/status',
    'virtualmachineinstancereplicasets/scale',
    'virtualmachineinstancereplicasets/status',
    'virtualmachines/status',
  ]);
  for (const method of ['GET', 'PUT', 'PATCH']) {
    const body = method === 'GET' ? undefined : {};
    const answer = await server.send(method, `${INSTANCES}/${metadata.name}/status`, body, MERGE_PATCH);
    assert.equal(answer.status, 404, method);
  }
  const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
  const { json: crd } = await server.send('GET', `${definitions}/virtualmachineinstances.kubevirt.io`);
  for (const { name, subresources } of crd.spec.versions) assert.equal(subresources, undefined, name);
});

// S-415: The status of a VirtualMachineInstance is a part of the object: KubeVirt's own accounts write it by PUT and
//   every kind of patch, nulls kept; of anybody else it is left out.
test('virt-controller puts metadata, spec and status in one write, nulls and all', async () => {
  const vmi = await create();
  vmi.metadata.labels = { 'kubevirt.io/nodeName': 'n1' };
  vmi.status = { ...vmi.status, phase: 'Scheduled', nodeName: 'n1', conditions: [ready('False')] };
  const { status, json } = await server.report('PUT', `${INSTANCES}/${vmi.metadata.name}`, vmi);
  assert.equal(status, 200, JSON.stringify(json));
  assert.equal(json.metadata.labels['kubevirt.io/nodeName'], 'n1');
  assert.equal(json.status.phase, 'Scheduled');
  assert.deepEqual(json.status.conditions, [ready('False')]);
  // The definition has no status subresource: any change beyond the metadata counts.
  assert.equal(json.metadata.generation, vmi.metadata.generation + 1);
});

for (const account of ['kubevirt-controller', 'kubevirt-handler', 'kubevirt-apiserver', 'coracle-vmi'])
  test(`${account} writes a status by each kind of patch`, async () => {
    const { metadata } = await create();
    const path = `${INSTANCES}/${metadata.name}`;
    const as = of(account);
    const applied = await server.sendAs(
      as,
      'PATCH',
      `${path}?fieldManager=${account}`,
      { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachineInstance', status: { conditions: [ready('True')] } },
      APPLY_PATCH,
    );
    assert.equal(applied.status, 200, JSON.stringify(applied.json));
    assert.deepEqual(applied.json.status.conditions, [ready('True')]);
    const next = [ready('True'), { ...ready('True'), type: 'Paused' }];
    const tested = await server.sendAs(
      as,
      'PATCH',
      path,
      [
        { op: 'test', path: '/status/conditions', value: [ready('True')] },
        { op: 'replace', path: '/status/conditions', value: next },
      ],
      JSON_PATCH,
    );
    assert.equal(tested.status, 200, JSON.stringify(tested.json));
    assert.deepEqual(tested.json.status.conditions, next);
    const merged = await server.sendAs(as, 'PATCH', path, { status: { nodeName: 'n2' } }, MERGE_PATCH);
    assert.equal(merged.json.status.nodeName, 'n2');
  });

for (const [who, user] of [
  ['an admin', ['admin', 'system:masters']],
  ['an account of that name in another namespace', of('kubevirt-controller', 'default')],
  ['a component of ours in another namespace', of('coracle-vmi', 'default')],
] as const)
  test(`${who} changes no status: what it sends of it is left out, and the rest is taken`, async () => {
    const vmi = await create({ phase: 'Running', nodeName: 'n9', evacuationNodeName: 'n9' });
    assert.equal(vmi.status.phase, 'Pending');
    assert.equal(vmi.status.nodeName, undefined);
    const path = `${INSTANCES}/${vmi.metadata.name}`;
    const only = await server.sendAs(user, 'PATCH', path, { status: { nodeName: 'n1' } }, MERGE_PATCH);
    assert.equal(only.status, 200);
    assert.deepEqual(only.json, vmi);
    const both = await server.sendAs(user, 'PUT', path, {
      ...vmi,
      metadata: { ...vmi.metadata, labels: { mine: 'yes' } },
      status: { phase: 'Failed' },
    });
    assert.equal(both.json.metadata.labels.mine, 'yes');
    assert.deepEqual(both.json.status, vmi.status);
    assert.equal(both.json.metadata.generation, vmi.metadata.generation);
  });

// S-416: A node writes the status of its own instances and nothing else of them, though both come in one write.
test('a node writes the status of its own instances, and nothing beside it', async () => {
  const { metadata } = await create();
  const path = `${INSTANCES}/${metadata.name}`;
  const foreign = await server.sendAs(NODE, 'PATCH', path, { status: { phase: 'Running' } }, MERGE_PATCH);
  assert.equal(foreign.status, 403);
  await server.report('PATCH', path, { status: { nodeName: 'n1' } }, MERGE_PATCH);
  const own = await server.sendAs(NODE, 'PATCH', path, { status: { phase: 'Running' } }, MERGE_PATCH);
  assert.equal(own.json.status.phase, 'Running');
  const spec = { terminationGracePeriodSeconds: 1 };
  const changed = await server.sendAs(NODE, 'PATCH', path, { spec, status: { phase: 'Failed' } }, MERGE_PATCH);
  assert.equal(changed.status, 422, 'the spec is for nobody to change');
  for (const body of [
    { metadata: { labels: { a: 'b' } } },
    { metadata: { annotations: { a: 'b' } } },
    { metadata: { finalizers: null } },
    { metadata: { ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'n1', uid: 'u' }] } },
  ]) {
    const refused = await server.sendAs(NODE, 'PATCH', path, { ...body, status: { phase: 'Failed' } }, MERGE_PATCH);
    assert.equal(refused.status, 403, JSON.stringify(body));
    assert.match(refused.json.message, /only update the status of instances, and nothing else/);
  }
  assert.equal((await server.send('GET', path)).json.status.phase, 'Running');
});

// S-417
test('our controllers and agents write through the object, nulls kept, and only where nobody wrote in between', async () => {
  const { metadata } = await create();
  const client = server.plane.clientFor('coracle-vmi');
  const key = { namespace: 'default', name: metadata.name };
  const read = await client.get(VIRTUAL_MACHINE_INSTANCES, key);
  const conditions = [ready('True')];
  const status = { ...read.status, conditions } as unknown as NonNullable<VirtualMachineInstance['status']>;
  const stored = await commit(client, VIRTUAL_MACHINE_INSTANCES, { before: read, after: { ...read, status } });
  assert.deepEqual(stored?.status?.conditions, conditions);
  const stale = { before: read, after: { ...read, status: { ...status, phase: 'Failed' as const } } };
  await assert.rejects(commit(client, VIRTUAL_MACHINE_INSTANCES, stale), { code: 409 });
});

test('the policy that coracle rbac prints for other clusters refuses what our own server leaves out', async () => {
  const other = await startInProcess();
  try {
    for (const manifest of instanceStatusPolicy({})) {
      const plural = manifest.kind === 'ValidatingAdmissionPolicy' ? 'policies' : 'policybindings';
      const path = `/apis/admissionregistration.k8s.io/v1/validatingadmission${plural}`;
      assert.equal((await other.send('POST', path, manifest)).status, 201);
    }
    const vmi = { metadata: { name: 'a' }, spec: { domain: { devices: {}, memory: { guest: '64Mi' } } } };
    await other.send('POST', INSTANCES, { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachineInstance', ...vmi });
    const path = `${INSTANCES}/a`;
    const as = (user: readonly [string, ...string[]], body: object) =>
      other.sendAs(user, 'PATCH', path, body, MERGE_PATCH);
    assert.equal((await as(of('coracle-agent'), { status: { phase: 'Running' } })).status, 200);
    assert.equal((await as(of('kubevirt-controller'), { status: { nodeName: 'n1' } })).status, 200);
    const labelled = await as(of('coracle-agent'), { metadata: { labels: { a: 'b' } } });
    assert.equal(labelled.status, 403);
    assert.match(labelled.json.message, /can only update the status of instances/);
    assert.equal((await as(['admin', 'system:masters'], { metadata: { labels: { a: 'b' } } })).status, 200);
  } finally {
    await other.stop();
  }
});
