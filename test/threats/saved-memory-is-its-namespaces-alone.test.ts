/** The UID of another tenant's saved memory opens nothing: not at admission, and not at the agent, which asks nobody. */
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { NodeFacts } from '../../packages/kubevirt/src/rules/machine/machine-plan.ts';
import { machinePlan } from '../../packages/kubevirt/src/rules/machine/plan.ts';
import type { AgentEnvironment } from '../../packages/node-agent/src/agent/environment.ts';
import { memoryRequest } from '../../packages/node-agent/src/agent/memory/memory-requests.ts';
import { resumeOf } from '../../packages/node-agent/src/agent/memory/resume-memory.ts';
import {
  beginState,
  commitState,
  markUsed,
  type SavedState,
} from '../../packages/node-agent/src/agent/memory/state-files.ts';
import { NEVER } from '../../packages/runtime/src/http/seam.ts';
import { startPlane, type TestPlane } from '../testkit/control-plane.ts';

const FACTS: NodeFacts = {
  architecture: 'amd64',
  qemuVersion: '7.2.22',
  accelerator: 'tcg',
  machineTypes: ['pc-q35-7.2'],
  machineAliases: { q35: 'pc-q35-7.2' },
  cpuModels: ['max'],
  cpuFeatures: [],
  devices: ['virtio-net-pci'],
  sandbox: true,
};
const STATE = '11111111-2222-4333-8444-555555555555';
const FROM = 'coracle.dev/resume-from';

let plane: TestPlane;
let victims: string;
let own: string;
before(async () => {
  plane = await startPlane();
  const grant = async (namespace: string, user: string, rules: object[]): Promise<void> => {
    const rbac = `POST /apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}`;
    const metadata = { name: user };
    await plane.admin(`${rbac}/roles`, { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'Role', metadata, rules });
    await plane.admin(`${rbac}/rolebindings`, {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'RoleBinding',
      metadata,
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: user },
      subjects: [{ kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name: user }],
    });
  };
  const machines = { apiGroups: ['kubevirt.io'], resources: ['*'], verbs: ['*'] };
  const snapshots = { apiGroups: ['snapshot.kubevirt.io'], resources: ['virtualmachinesnapshots'], verbs: ['*'] };
  const restores = { apiGroups: ['snapshot.kubevirt.io'], resources: ['virtualmachinerestores'], verbs: ['create'] };
  for (const name of ['victim', 'tenant'])
    await plane.admin('POST /api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
  await grant('tenant', 'tenant', [machines, snapshots, restores]);
  await grant('tenant', 'starter', [machines]);
  await grant('tenant', 'saver', [snapshots]);
  for (const namespace of ['victim', 'tenant'])
    await plane.admin(`POST /apis/kubevirt.io/v1/namespaces/${namespace}/virtualmachines`, vm('source'));
  const save = async (namespace: string): Promise<string> =>
    (await plane.admin(`POST ${snapshotsOf(namespace)}`, snapshot('saved'))).metadata.uid;
  victims = await save('victim');
  own = await save('tenant');
});
after(() => plane.stop());

const snapshotsOf = (namespace: string): string =>
  `/apis/snapshot.kubevirt.io/v1beta1/namespaces/${namespace}/virtualmachinesnapshots`;
const snapshot = (name: string, annotations: object = {}) => ({
  apiVersion: 'snapshot.kubevirt.io/v1beta1',
  kind: 'VirtualMachineSnapshot',
  metadata: { name, annotations: { 'coracle.dev/include-memory': 'true', ...annotations } },
  spec: { source: { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: 'source' } },
});
const template = (annotations?: object) => ({
  metadata: { ...(annotations && { annotations }) },
  spec: { domain: { devices: {}, memory: { guest: '64Mi' } } },
});
const vm = (name: string, annotations?: object, inner?: object) => ({
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachine',
  metadata: { name, ...(annotations && { annotations }) },
  spec: { runStrategy: 'Halted', template: template(inner) },
});
const vmi = (name: string, annotations: object) => ({
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachineInstance',
  ...template(),
  metadata: { name, annotations },
});
const MACHINES = '/apis/kubevirt.io/v1/namespaces/tenant';
const as = (user: string) => ({ as: [user, 'system:authenticated'] as const });

// S-676: Nobody goes on from the memory of another namespace, or without the right to restore; a fork takes the right
//   to create virtual machines.
test('a machine goes on from the memory of its own namespace, by whom may restore there', async () => {
  const post = (user: string, resource: string, body: object) =>
    plane.ask(`POST ${MACHINES}/${resource}`, { ...as(user), body });
  const cases: readonly [what: string, user: string, resource: string, body: object, code: number, why?: RegExp][] = [
    ['another namespace', 'tenant', 'virtualmachines', vm('a', { [FROM]: victims }), 403, /in namespace tenant/],
    ['on its template', 'tenant', 'virtualmachines', vm('b', {}, { [FROM]: victims }), 403, /in namespace tenant/],
    ['on an instance', 'tenant', 'virtualmachineinstances', vmi('c', { [FROM]: victims }), 403, /in namespace tenant/],
    ['of nobody', 'tenant', 'virtualmachines', vm('d', { [FROM]: STATE }), 403, /in namespace tenant/],
    ['a path', 'tenant', 'virtualmachines', vm('e', { [FROM]: `../../${victims}` }), 400, /must be the UID/],
    ['without the right', 'starter', 'virtualmachines', vm('f', { [FROM]: own }), 403, /create virtualmachinerestores/],
    ['its own', 'tenant', 'virtualmachines', vm('g', { [FROM]: own }), 201],
  ];
  for (const [what, user, resource, body, code, why] of cases) {
    const { status, json } = await post(user, resource, body);
    assert.equal(status, code, `${what}: ${JSON.stringify(json)}`);
    if (why) assert.match(json.message, why, what);
  }
  const later = await plane.ask(`PATCH ${MACHINES}/virtualmachines/source`, {
    ...as('tenant'),
    body: { metadata: { annotations: { [FROM]: victims } } },
  });
  assert.equal(later.status, 403, 'nor by a change later on');
});

// S-676
test('a fork takes the right to make machines, and its names are set once', async () => {
  const into = { 'coracle.dev/fork-into': 'copy' };
  const post = (user: string, body: object) => plane.ask(`POST ${snapshotsOf('tenant')}`, { ...as(user), body });
  const refused = await post('saver', snapshot('x', into));
  assert.equal(refused.status, 403);
  assert.match(refused.json.message, /create virtualmachines in tenant/);
  assert.equal((await post('tenant', snapshot('y', { 'coracle.dev/fork-into': '../y' }))).status, 400);
  assert.equal((await post('saver', snapshot('z'))).status, 201);
  const later = { ...as('saver'), body: { metadata: { annotations: into } } };
  assert.equal((await plane.ask(`PATCH ${snapshotsOf('tenant')}/z`, later)).status, 403);
  assert.equal((await post('tenant', snapshot('w', into))).status, 201);
});

// S-1295: Nobody has the memory of a guest dumped into a claim that they name by its UID: the controller alone says which it is.
test('the volume of a memory dump is named by the controller alone', async () => {
  const named = { 'coracle.dev/memory-dump-claim': victims };
  const created = await plane.ask(`POST ${MACHINES}/virtualmachineinstances`, {
    ...as('tenant'),
    body: vmi('dumped', named),
  });
  assert.equal(created.status, 201, JSON.stringify(created.json));
  assert.equal(created.json.metadata.annotations?.['coracle.dev/memory-dump-claim'], undefined);
  const later = { ...as('tenant'), body: { metadata: { annotations: named } } };
  const { status, json } = await plane.ask(`PATCH ${MACHINES}/virtualmachineinstances/dumped`, later);
  assert.equal(status, 422, JSON.stringify(json));
  assert.match(json.message, /memory-dump-claim is written only by the controller/);
});

// S-676
test('an agent gives an instance no state of another namespace, and removes none', async (t) => {
  const root = await mkdtemp(join(tmpdir(), 'coracle-memory-'));
  t.after(() => rm(root, { recursive: true, force: true }));
  const memoryDirectory = join(root, 'memory');
  const instance = (namespace: string, from: string, uid = STATE) => ({
    ...vmi('vm', { [FROM]: from }),
    metadata: { name: 'vm', namespace, uid, annotations: { [FROM]: from } },
  });
  const making = await beginState(memoryDirectory, STATE);
  await writeFile(join(making, 'ram'), 'secret', { mode: 0o600 });
  await commitState(memoryDirectory, making, {
    version: 1,
    state: STATE,
    namespace: 'victim',
    plan: machinePlan(instance('victim', STATE), FACTS),
    host: { qemuVersion: FACTS.qemuVersion },
    bytes: 'secret'.length,
    disks: {},
  } as unknown as SavedState);
  for (const [path, mode] of [
    ['', 0o700],
    [STATE, 0o700],
    [`${STATE}/state.json`, 0o600],
  ] as const)
    assert.equal((await stat(join(memoryDirectory, path))).mode & 0o777, mode, path);

  const environment = { memoryDirectory, facts: FACTS, nodeName: 'n1' } as unknown as AgentEnvironment;
  const resume = (namespace: string, from: string) =>
    resumeOf(environment, { vmi: instance(namespace, from), signal: NEVER, onFallback: () => {} });
  assert.equal((await resume('victim', STATE))?.saved.state, STATE);
  const missing = (await resume('tenant', victims).catch((error: Error) => error.message)) as string;
  const others = (await resume('tenant', STATE).catch((error: Error) => error.message)) as string;
  assert.match(others, /has no state .* of namespace tenant/);
  assert.equal(others.replace(STATE, ''), missing.replace(victims, ''), 'nobody learns that there is one');
  for (const from of [`${STATE}/..`, `../${STATE}`, 'x'])
    await assert.rejects(resume('victim', from), /names no state/, from);

  let isOtherClient = false;
  const remove = (state: string) =>
    memoryRequest({ find: () => undefined, memoryDirectory, isControlPlane: () => !isOtherClient }, {
      method: 'POST',
      path: '/memory/v1/delete',
      body: new TextEncoder().encode(JSON.stringify({ state, namespace: 'tenant' })),
    } as never) as Promise<unknown>;
  await assert.rejects(remove(STATE), /of another namespace/);
  isOtherClient = true;
  await assert.rejects(remove(STATE), /for the control plane only/);
  isOtherClient = false;
  await mkdir(join(root, 'other'));
  await assert.rejects(remove('../other'), /not a UID/);
  assert.deepEqual((await readdir(root)).sort(), ['memory', 'other']);
  // Once it was used for a machine, the next instance of it boots: its disks have gone on since.
  await markUsed(memoryDirectory, STATE, STATE, victims);
  assert.equal(await resume('victim', STATE), undefined);
});
