/** `objectgraph?extended=true`: what it has beyond upstream's, and that nobody learns from it what he may not read. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { ExtendedGraphNode } from '../../packages/kubevirt/src/rules/object-graph/mark-graph.ts';
import { type Answer, type InProcessControlPlane, startInProcess } from '../testkit/in-process-control-plane.ts';

let board: InProcessControlPlane;

const NS = '/api/v1/namespaces/default';
const VMS = '/apis/kubevirt.io/v1/namespaces/default/virtualmachines';
const SNAPSHOTS = '/apis/snapshot.kubevirt.io/v1beta1/namespaces/default';
const graphOf = (name: string, query = '?extended=true', resource = 'virtualmachines'): string =>
  `/apis/subresources.kubevirt.io/v1/namespaces/default/${resource}/${name}/objectgraph${query}`;

async function make(path: string, body: object): Promise<Answer['json']> {
  const { status, json } = await board.send('POST', path, body);
  assert.equal(status, 201, JSON.stringify(json));
  return json;
}

const machine = (name: string, volumes: object[], spec: object = {}) => ({
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachine',
  metadata: { name },
  spec: { runStrategy: 'Halted', template: { spec: { domain: { devices: {} }, volumes } }, ...spec },
});
const secret = (secretName: string) => ({ name: secretName, secret: { secretName } });
const disk = { name: 'disk', persistentVolumeClaim: { claimName: 'disk' } };

before(async () => {
  board = await startInProcess();
  await make('/api/v1/persistentvolumes', {
    metadata: { name: 'pv-1' },
    spec: {
      capacity: { storage: '1Gi' },
      accessModes: ['ReadWriteOnce'],
      hostPath: { path: '/x' },
      persistentVolumeReclaimPolicy: 'Delete',
    },
  });
  await make(`${NS}/secrets`, { metadata: { name: 'shared' } });
  await make('/apis/instancetype.kubevirt.io/v1beta1/namespaces/default/virtualmachineinstancetypes', {
    apiVersion: 'instancetype.kubevirt.io/v1beta1',
    kind: 'VirtualMachineInstancetype',
    metadata: { name: 'small' },
    spec: { cpu: { guest: 1 }, memory: { guest: '64Mi' } },
  });
  const instancetype = { kind: 'VirtualMachineInstancetype', name: 'small' };
  const { metadata } = await make(VMS, machine('db', [disk, secret('shared'), secret('absent')], { instancetype }));
  await make(VMS, machine('copy', [disk, secret('shared'), secret('absent')], { instancetype }));
  const owner = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', name: 'db', uid: metadata.uid };
  await make(`${NS}/persistentvolumeclaims`, {
    metadata: { name: 'disk', ownerReferences: [owner] },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, volumeName: 'pv-1' },
  });
  await make(`${SNAPSHOTS}/virtualmachinesnapshots`, {
    apiVersion: 'snapshot.kubevirt.io/v1beta1',
    kind: 'VirtualMachineSnapshot',
    metadata: { name: 'nightly' },
    spec: { source: { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: 'db' } },
  });
});
after(() => board.stop());

const text = (node: ExtendedGraphNode): string =>
  [
    `${node.objectReference.kind}/${node.objectReference.name.replace(/[0-9a-f]{8}-[0-9a-f-]{27}/, 'UID')}`,
    node.optional && 'optional',
    node.exists === undefined ? '' : node.exists ? 'exists' : 'missing',
    node.unknown && 'unknown',
    node.owned && 'owned',
    node.usedBy && `used by ${node.usedBy.map(({ name }) => name).join(',')}`,
  ]
    .filter(Boolean)
    .join(' ');
const flat = (node: ExtendedGraphNode, depth = 0): string[] => [
  '  '.repeat(depth) + text(node),
  ...(node.children ?? []).flatMap((child) => flat(child, depth + 1)),
];
const ok = ({ status, json }: Answer): ExtendedGraphNode => {
  assert.equal(status, 200, JSON.stringify(json));
  return json;
};

// S-792: `objectgraph?extended=true` shows beside that what saves, restores, backs up or exports the machine, what
//   upstream leaves out, revisions below their source and volumes below their claims; of each object whether it is
//   there, whether it goes with the machine, and who else refers to it. Without the option the answer is upstream's.
test('the extended graph: revisions, volumes, snapshots; existence, ownership and sharing', async () => {
  assert.deepEqual(flat(ok(await board.send('GET', graphOf('db')))), [
    'VirtualMachine/db exists',
    '  VirtualMachineInstancetype/small optional exists used by copy',
    '  PersistentVolumeClaim/disk exists owned used by copy',
    '    PersistentVolume/pv-1 exists owned',
    '  Secret/shared exists used by copy',
    '  Secret/absent missing used by copy',
    '  VirtualMachineSnapshot/nightly optional exists',
  ]);
});

// S-792
test('without the option, and with extended=false, the answer is upstream’s to the letter', async () => {
  const plain = await board.send('GET', graphOf('db', ''));
  const explicit = await board.send('GET', graphOf('db', '?extended=false'));
  assert.deepEqual(explicit.json, plain.json);
  const keys = new Set<string>();
  const collect = (node: ExtendedGraphNode): void => {
    for (const key of Object.keys(node)) keys.add(key);
    for (const child of node.children ?? []) collect(child);
  };
  collect(ok(plain));
  assert.deepEqual([...keys].sort(), ['children', 'labels', 'objectReference', 'optional']);
  const wrong = await board.send('GET', graphOf('db', '?extended=perhaps'));
  assert.deepEqual([wrong.status, wrong.json.message], [400, 'extended takes true or false, not "perhaps"']);
});

test('selectors reach what is below a node that they leave out', async () => {
  const body = { labelSelector: { matchLabels: { 'kubevirt.io/dependency-type': 'storage' } } };
  const storage = flat(ok(await board.send('GET', graphOf('db'), body)));
  assert.deepEqual(storage.slice(1), [
    '  PersistentVolumeClaim/disk exists owned used by copy',
    '    PersistentVolume/pv-1 exists owned',
    '  VirtualMachineSnapshot/nightly optional exists',
  ]);
  const needed = flat(ok(await board.send('GET', graphOf('db'), { includeOptionalNodes: false })));
  assert.ok(!needed.some((line) => line.includes('optional')), needed.join('\n'));
});

/** A user who may ask for graphs, and what else is said. */
async function user(name: string, rules: { apiGroups: string[]; resources: string[]; verbs: string[] }[]) {
  const rbac = '/apis/rbac.authorization.k8s.io/v1/namespaces/default';
  const graph = { apiGroups: ['subresources.kubevirt.io'], resources: ['*'], verbs: ['get'] };
  await make(`${rbac}/roles`, { metadata: { name }, rules: [graph, ...rules] });
  await make(`${rbac}/rolebindings`, {
    metadata: { name },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name }],
  });
  return async (): Promise<ExtendedGraphNode> =>
    ok(await board.sendAs([name, 'system:authenticated'], 'GET', graphOf('db')));
}

// S-793: Of an object that the caller may not get the extended graph tells neither existence nor sharing, and of kinds
//   that the caller may not list nothing but their names.
test('who may read nothing learns what the plain graph says, and nothing more', async () => {
  const graph = await (await user('nobody-special', []))();
  assert.deepEqual(flat(graph), [
    'VirtualMachine/db exists',
    '  VirtualMachineInstancetype/small optional unknown',
    '  PersistentVolumeClaim/disk unknown',
    '  Secret/shared unknown',
    '  Secret/absent unknown',
  ]);
  assert.deepEqual(graph.notListed, [
    'virtualmachinebackups.backup.kubevirt.io',
    'virtualmachinebackuptrackers.backup.kubevirt.io',
    'virtualmachineclones.clone.kubevirt.io',
    'virtualmachineexports.export.kubevirt.io',
    'virtualmachineinstances.kubevirt.io',
    'virtualmachinerestores.snapshot.kubevirt.io',
    'virtualmachines.kubevirt.io',
    'virtualmachinesnapshotcontents.snapshot.kubevirt.io',
    'virtualmachinesnapshots.snapshot.kubevirt.io',
  ]);
});

// S-793
test('who may list machines and not read a Secret does not learn who shares it', async () => {
  const ask = await user('lister', [
    { apiGroups: ['kubevirt.io'], resources: ['*'], verbs: ['list'] },
    { apiGroups: [''], resources: ['persistentvolumeclaims'], verbs: ['get'] },
  ]);
  assert.deepEqual(flat(await ask()).slice(2), [
    '  PersistentVolumeClaim/disk exists owned used by copy',
    '    PersistentVolume/pv-1 unknown',
    '  Secret/shared unknown',
    '  Secret/absent unknown',
  ]);
});

// S-793
test('who may read a Secret and not list machines does not learn who shares it either', async () => {
  const ask = await user('reader', [{ apiGroups: [''], resources: ['secrets'], verbs: ['get'] }]);
  assert.deepEqual(flat(await ask()).slice(3), ['  Secret/shared exists', '  Secret/absent missing']);
});

test('an instance', async () => {
  await make('/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstances', {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { name: 'alone' },
    spec: {
      domain: { devices: { disks: [{ name: 'shared', disk: {} }] }, memory: { guest: '64Mi' } },
      volumes: [secret('shared')],
    },
  });
  const graph = ok(await board.send('GET', graphOf('alone', '?extended=true', 'virtualmachineinstances')));
  assert.deepEqual(flat(graph), ['VirtualMachineInstance/alone exists', '  Secret/shared exists used by copy,db']);
  const db = flat(ok(await board.send('GET', graphOf('db'))));
  assert.ok(db.includes('  Secret/shared exists used by copy,alone'), db.join('\n'));
});
