/** Claims and volumes find each other as kube-controller-manager has them, and say where they are. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createVolumeController } from '../../packages/kube-controllers/src/storage/volume-controller.ts';
import { eventually } from '../testkit/eventually.ts';
import { type InProcessServer, startServer } from '../testkit/in-process-server.ts';
import { type RunningControllers, runControllers } from '../testkit/run-controllers.ts';

// biome-ignore lint/suspicious/noExplicitAny: answers of every shape.
type Row = Record<string, any>;
let server: InProcessServer;
let controllers: RunningControllers;
before(async () => {
  server = await startServer({ defaultAdmission: true });
  controllers = runControllers(server, (environment) => [createVolumeController(environment)]);
});
after(() => controllers.stop());

const VOLUMES = '/api/v1/persistentvolumes';
const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims';
const CLASSES = '/apis/storage.k8s.io/v1/storageclasses';
const get = async (path: string): Promise<Row> => (await server.request('GET', path)).json;
const volume = (name: string, spec: object = {}, metadata: object = {}) =>
  server.create(VOLUMES, {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name, ...metadata },
    spec: {
      capacity: { storage: '1Gi' },
      accessModes: ['ReadWriteOnce'],
      hostPath: { path: '/x' },
      persistentVolumeReclaimPolicy: 'Retain',
      ...spec,
    },
  });
const claim = (name: string, spec: object = {}, annotations: object = {}) =>
  server.create(CLAIMS, {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name, annotations },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, ...spec },
  });
const storageClass = (name: string, more: object = {}) =>
  server.create(CLASSES, {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name },
    provisioner: 'somebody.example',
    ...more,
  });
const phase = (path: string, wanted: string) => eventually(async () => (await get(path)).status?.phase === wanted);
const reported = (name: string, reason: string, message: RegExp) =>
  eventually(async () =>
    (await get('/api/v1/namespaces/default/events'))['items'].some(
      (one: Row) => one['involvedObject'].name === name && one['reason'] === reason && message.test(one['message']),
    ),
  );

const CSI = { hostPath: null, csi: { driver: 'somebody.example', volumeHandle: 'h' } };
// Each in a class of its own, so that they do not take each other's volumes.
const CHOICES: readonly [what: string, volumes: Record<string, object>, wanted: object, got: string | undefined][] = [
  ['the smallest that fits', { a: { capacity: { storage: '5Gi' } }, b: { capacity: { storage: '2Gi' } } }, {}, 'b'],
  ['none that is too small', { a: { capacity: { storage: '512Mi' } } }, {}, undefined],
  [
    'the one with the fewest access modes',
    { a: { accessModes: ['ReadWriteOnce', 'ReadWriteMany'] }, b: { capacity: { storage: '9Gi' } } },
    {},
    'b',
  ],
  ['none without its access mode', { a: {} }, { accessModes: ['ReadWriteMany'] }, undefined],
  ['none of another mode', { a: {}, b: { volumeMode: 'Block' } }, { volumeMode: 'Block' }, 'b'],
  ['none of another class', { a: { storageClassName: 'elsewhere' } }, {}, undefined],
  [
    'one of its VolumeAttributesClass',
    { a: {}, b: { capacity: { storage: '9Gi' }, volumeAttributesClassName: 'fast', ...CSI } },
    { volumeAttributesClassName: 'fast' },
    'b',
  ],
  [
    'one that its selector selects',
    { a: {}, b: { labels: { disk: 'fast' } } },
    { selector: { matchLabels: { disk: 'fast' } } },
    'b',
  ],
  ['one that is kept for it', { a: {}, b: { capacity: { storage: '9Gi' }, claimRef: 'claim' } }, {}, 'b'],
  ['none that is kept for another', { a: { claimRef: 'other' } }, {}, undefined],
];
for (const [index, [what, volumes, wanted, got]] of CHOICES.entries()) {
  test(`a claim gets ${what}`, async () => {
    const name = `choice-${index}`;
    await storageClass(name);
    for (const [short, { labels, claimRef, ...spec }] of Object.entries(volumes as Record<string, Row>)) {
      const reference = claimRef && { claimRef: { namespace: 'default', name: claimRef === 'claim' ? name : 'else' } };
      await volume(`${name}-${short}`, { storageClassName: name, ...spec, ...reference }, labels && { labels });
      await phase(`${VOLUMES}/${name}-${short}`, 'Available');
    }
    await claim(name, { storageClassName: name, ...wanted });
    if (got === undefined) {
      await reported(name, 'ExternalProvisioning', /external provisioner 'somebody.example'/);
      const { status, metadata } = await get(`${CLAIMS}/${name}`);
      assert.equal(status.phase, 'Pending');
      assert.equal(metadata.annotations['volume.kubernetes.io/storage-provisioner'], 'somebody.example');
      return;
    }
    await phase(`${CLAIMS}/${name}`, 'Bound');
    const bound = await get(`${CLAIMS}/${name}`);
    const taken = await get(`${VOLUMES}/${name}-${got}`);
    assert.equal(bound['spec'].volumeName, `${name}-${got}`);
    assert.equal(taken['spec'].claimRef.uid, bound['metadata'].uid);
    assert.equal(taken['status'].phase, 'Bound');
    assert.deepEqual(bound['status'].capacity, taken['spec'].capacity);
    assert.equal(bound['status'].currentVolumeAttributesClassName, taken['spec'].volumeAttributesClassName);
    assert.equal(bound['metadata'].annotations['pv.kubernetes.io/bind-completed'], 'yes');
  });
}

const WAITS: readonly [what: string, storageClass: object | undefined, reason: string, message: RegExp][] = [
  ['of a class that does not exist', undefined, 'ProvisioningFailed', /storageclass.storage.k8s.io "wait-0" not found/],
  [
    'of a class without a provisioner',
    { provisioner: 'kubernetes.io/no-provisioner' },
    'ProvisioningFailed',
    /no volume plugin matched name: kubernetes.io\/no-provisioner/,
  ],
  [
    'that waits for its first Pod',
    { volumeBindingMode: 'WaitForFirstConsumer' },
    'WaitForFirstConsumer',
    /waiting for first consumer to be created before binding/,
  ],
];
for (const [index, [what, spec, reason, message]] of WAITS.entries()) {
  test(`a claim ${what} is reported`, async () => {
    const name = `wait-${index}`;
    if (spec) await storageClass(name, spec);
    if (spec) await volume(name, { storageClassName: name });
    if (spec && 'volumeBindingMode' in spec) await phase(`${VOLUMES}/${name}`, 'Available');
    await claim(name, { storageClassName: name, accessModes: index === 2 ? ['ReadWriteOnce'] : ['ReadOnlyMany'] });
    await reported(name, reason, message);
    assert.equal((await get(`${CLAIMS}/${name}`))['status'].phase, 'Pending');
  });
}

test('a claim that waits for its first Pod is given to the provisioner when a node is selected', async () => {
  await storageClass('selected', { volumeBindingMode: 'WaitForFirstConsumer' });
  await claim('selected', { storageClassName: 'selected' });
  await reported('selected', 'WaitForFirstConsumer', /./);
  await server.request('PATCH', `${CLAIMS}/selected`, {
    body: { metadata: { annotations: { 'volume.kubernetes.io/selected-node': 'n' } } },
  });
  await reported('selected', 'ExternalProvisioning', /./);
});

// S-841: A claim is bound to volumes of its VolumeAttributesClass only, and one that names a volume it cannot have says
//   why.
for (const [what, spec, wanted] of [
  ['too small', { capacity: { storage: '1Mi' } }, 'requested PV is too small'],
  ['of another class', { storageClassName: 'other' }, 'storageClassName does not match'],
  [
    'of another VolumeAttributesClass',
    { volumeAttributesClassName: 'x', ...CSI },
    'volumeAttributesClassName does not match',
  ],
  ['of another mode', { volumeMode: 'Block' }, 'incompatible volumeMode'],
  ['without its access mode', { accessModes: ['ReadWriteMany'] }, 'incompatible accessMode'],
] as const)
  test(`a claim that names a volume ${what} is reported`, async () => {
    const name = what.toLowerCase().replaceAll(' ', '-');
    await volume(name, { storageClassName: name, ...spec });
    await claim(name, { storageClassName: name, volumeName: name });
    await reported(name, 'VolumeMismatch', new RegExp(`^Cannot bind to requested volume "${name}": ${wanted}$`));
    assert.equal((await get(`${CLAIMS}/${name}`))['status'].phase, 'Pending');
    assert.equal((await get(`${VOLUMES}/${name}`))['spec'].claimRef, undefined);
  });

// S-523: Claims and volumes find each other, and say where they are, as with kube-controller-manager: class, size,
//   modes, selector, phases, events.
// Compat Types, P1, yes: binding of claims and volumes, phases, reclaim policies, default class that comes later
test('a volume whose claim is deleted is Released, and free again when its claimRef is taken away', async () => {
  await volume('kept', { storageClassName: 'kept' });
  await claim('kept', { storageClassName: 'kept' });
  await phase(`${CLAIMS}/kept`, 'Bound');
  const at = `${CLAIMS}/kept`;
  await server.request('PATCH', at, { body: { metadata: { finalizers: null } } });
  await server.request('DELETE', at);
  await phase(`${VOLUMES}/kept`, 'Released');
  await claim('kept', { storageClassName: 'kept' });
  await reported('kept', 'ProvisioningFailed', /"kept" not found/);
  assert.equal((await get(`${VOLUMES}/kept`))['status'].phase, 'Released');
  await server.request('PATCH', `${VOLUMES}/kept`, { body: { spec: { claimRef: null } } });
  await phase(at, 'Bound');
});

test('a volume that nobody here can delete fails, and says why', async () => {
  await volume('fails', { storageClassName: 'fails', persistentVolumeReclaimPolicy: 'Delete' });
  await claim('fails', { storageClassName: 'fails' });
  await phase(`${CLAIMS}/fails`, 'Bound');
  await server.request('PATCH', `${CLAIMS}/fails`, { body: { metadata: { finalizers: null } } });
  await server.request('DELETE', `${CLAIMS}/fails`);
  await phase(`${VOLUMES}/fails`, 'Failed');
  const { status } = await get(`${VOLUMES}/fails`);
  assert.match(status.message, /error getting deleter volume plugin for volume "fails"/);
  await reported('fails', 'VolumeFailedDelete', /no deletable volume plugin matched/);
});

test('a bound claim whose volume is gone is Lost', async () => {
  await volume('lost', { storageClassName: 'lost' });
  await claim('lost', { storageClassName: 'lost' });
  await phase(`${CLAIMS}/lost`, 'Bound');
  await server.request('DELETE', `${VOLUMES}/lost`);
  await server.request('PATCH', `${VOLUMES}/lost`, { body: { metadata: { finalizers: null } } });
  await phase(`${CLAIMS}/lost`, 'Lost');
  await reported('lost', 'ClaimLost', /Data on the volume is lost/);
});

// S-523
test('a claim that named no class gets the default class when there is one', async () => {
  await claim('late');
  await reported('late', 'FailedBinding', /no persistent volumes available for this claim and no storage class is set/);
  await claim('none', { storageClassName: '' });
  const annotations = { 'storageclass.kubernetes.io/is-default-class': 'true' };
  await storageClass('default', { metadata: { name: 'default', annotations } });
  await eventually(async () => (await get(`${CLAIMS}/late`))['spec'].storageClassName === 'default');
  assert.equal((await get(`${CLAIMS}/none`))['spec'].storageClassName, '');
});

test('two volumes that were taken for one claim do not both stay with it', async () => {
  await storageClass('twice');
  const claimRef = { namespace: 'default', name: 'twice' };
  const annotations = { 'pv.kubernetes.io/bound-by-controller': 'yes' };
  await volume('twice-a', { storageClassName: 'twice' });
  await phase(`${VOLUMES}/twice-a`, 'Available');
  const { metadata } = (await claim('twice', { storageClassName: 'twice' })) as Row;
  await volume('twice-b', { storageClassName: 'twice', claimRef: { ...claimRef, uid: metadata.uid } }, { annotations });
  await phase(`${CLAIMS}/twice`, 'Bound');
  const other = (await get(`${CLAIMS}/twice`))['spec'].volumeName === 'twice-a' ? 'twice-b' : 'twice-a';
  await eventually(async () => {
    const { spec, status } = await get(`${VOLUMES}/${other}`);
    return spec.claimRef === undefined && status?.phase === 'Available';
  });
});
