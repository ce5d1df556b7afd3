/** Claims of class `local` get volumes in a pool, of their own size, from snapshots and claims, and give the space back. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { CLAIMS, type StoragePlane, startStoragePlane, VOLUMES } from '../testkit/storage-plane.ts';

const OLD = '11111111-2222-4333-8444-555555555555';
let plane: StoragePlane;
before(async () => {
  plane = await startStoragePlane(['resourcequota-controller']);
});
after(() => plane.stop());

const isBound = ({ status }: { status?: { phase?: string } }): boolean => status?.phase === 'Bound';
const bound = (name: string) => plane.settled(`${CLAIMS}/${name}`, isBound);
const gone = (path: string) => plane.settled(path, (object) => Object.keys(object).length === 0);

// S-525: A claim of class `local` gets a volume in a pool, also made from another claim; deletion gives the space back,
//   Retain keeps the content; a claim grows while it is used.
// Compat Types, P1, yes: provisioning, expansion, deletion of volumes
test('a claim without a class gets a volume of its uid in the pool', async () => {
  const { metadata } = await plane.claim('first');
  const claim = await bound('first');
  assert.equal(claim['spec'].storageClassName, 'local');
  assert.equal(claim['spec'].volumeName, `pvc-${metadata.uid}`);
  assert.deepEqual(claim['status'].capacity, { storage: '1Gi' });
  const volume = await plane.admin(`GET ${VOLUMES}/pvc-${metadata.uid}`);
  assert.deepEqual(volume.spec.csi, {
    driver: 'local.coracle.dev',
    volumeHandle: metadata.uid,
    volumeAttributes: { pool: 'pool-1', format: 'qcow2' },
  });
  assert.deepEqual(volume.spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions, [
    { key: 'topology.coracle.dev/pool', operator: 'In', values: ['pool-1'] },
  ]);
  assert.equal(volume.metadata.annotations['pv.kubernetes.io/provisioned-by'], 'local.coracle.dev');
  assert.deepEqual(volume.metadata.finalizers.sort(), [
    'external-provisioner.volume.kubernetes.io/finalizer',
    'kubernetes.io/pv-protection',
  ]);
  assert.equal(volume.spec.persistentVolumeReclaimPolicy, 'Delete');
  assert.equal(plane.pool.volumes.get(metadata.uid)?.bytes, 2 ** 30);
  await plane.reported('first', 'ProvisioningSucceeded');
});

// S-525
test('a deleted claim gives its space back, whatever was deleted first', async () => {
  const { metadata } = await plane.claim('brief');
  await bound('brief');
  await plane.admin(`DELETE ${VOLUMES}/pvc-${metadata.uid}`);
  assert.ok(plane.pool.volumes.has(metadata.uid), 'a bound volume stays');
  await plane.admin(`DELETE ${CLAIMS}/brief`);
  await gone(`${VOLUMES}/pvc-${metadata.uid}`);
  assert.equal(plane.pool.volumes.has(metadata.uid), false);
});

test('a volume in use is deleted later, and says why', async () => {
  const { metadata } = await plane.claim('busy');
  await bound('busy');
  plane.pool.refuse.set('deleteVolume', 'InUse');
  await plane.admin(`DELETE ${CLAIMS}/busy`);
  await plane.reported(`pvc-${metadata.uid}`, 'VolumeFailedDelete', /refused: InUse/);
  assert.ok(plane.pool.volumes.has(metadata.uid));
});

// S-525
test('with policy Retain the content stays when the claim goes, and when the volume goes', async () => {
  const { metadata } = await plane.claim('kept');
  await bound('kept');
  const at = `${VOLUMES}/pvc-${metadata.uid}`;
  await plane.admin(`PATCH ${at}`, { spec: { persistentVolumeReclaimPolicy: 'Retain' } });
  await plane.settled(at, (one) => one['metadata'].finalizers.length === 1);
  await plane.admin(`DELETE ${CLAIMS}/kept`);
  await plane.settled(at, (one) => one['status'].phase === 'Released');
  await plane.admin(`DELETE ${at}`);
  await gone(at);
  assert.ok(plane.pool.volumes.has(metadata.uid));
});

// S-525
test('a claim that asks for more grows, and says so while it does', async () => {
  const { metadata } = await plane.claim('grows');
  await bound('grows');
  await plane.admin(`PATCH ${CLAIMS}/grows`, { spec: { resources: { requests: { storage: '3Gi' } } } });
  const claim = await plane.settled(`${CLAIMS}/grows`, ({ status }) => status.capacity.storage === '3Gi');
  assert.equal(plane.pool.volumes.get(metadata.uid)?.bytes, 3 * 2 ** 30);
  assert.deepEqual(claim['status'].allocatedResources, { storage: '3Gi' });
  assert.equal(claim['status'].allocatedResourceStatuses, undefined);
  assert.deepEqual(claim['status'].conditions ?? [], []);
  const volume = await plane.admin(`GET ${VOLUMES}/pvc-${metadata.uid}`);
  assert.equal(volume.spec.capacity.storage, '3Gi');
  await plane.reported('grows', 'Resizing');
  await plane.reported('grows', 'VolumeResizeSuccessful');
});

test('a resize that the pool refuses is reported on the claim', async () => {
  await plane.claim('stuck');
  await bound('stuck');
  plane.pool.refuse.set('expandVolume', 'NoSpace');
  await plane.admin(`PATCH ${CLAIMS}/stuck`, { spec: { resources: { requests: { storage: '2Gi' } } } });
  await plane.reported('stuck', 'VolumeResizeFailed', /refused: NoSpace/);
  await plane.settled(`${CLAIMS}/stuck`, ({ status }) => status.capacity.storage === '2Gi');
});

// S-841
test('a claim that names a VolumeAttributesClass gets an event that there is none', async () => {
  await plane.claim('attributed', { volumeAttributesClassName: 'fast' });
  await plane.reported(
    'attributed',
    'ProvisioningFailed',
    /has no VolumeAttributesClasses, and the claim names "fast"/,
  );
  assert.deepEqual(
    plane.pool.calls.filter((call) => call.includes('fast')),
    [],
  );
});

// S-525
test('a claim of a claim is made from its volume, and asks for no less', async () => {
  const { metadata } = await plane.claim('origin');
  await bound('origin');
  const dataSource = { kind: 'PersistentVolumeClaim', name: 'origin' };
  const clone = await plane.claim('clone', { dataSource, resources: { requests: { storage: '2Gi' } } });
  await bound('clone');
  const { bytes, from } = plane.pool.volumes.get(clone['metadata'].uid)!;
  assert.deepEqual({ bytes, from }, { bytes: 2 * 2 ** 30, from: `volume/${metadata.uid}` });
  await plane.claim('less', { dataSource, resources: { requests: { storage: '1Mi' } } });
  await plane.reported('less', 'ProvisioningFailed', /must be greater than or equal in size/);
});

test('a claim that waits for its first Pod gets its volume when a node is selected', async () => {
  const { metadata } = await plane.claim('waits', { storageClassName: 'local-wait' });
  await plane.reported('waits', 'WaitForFirstConsumer');
  assert.equal(plane.pool.volumes.has(metadata.uid), false);
  const annotations = { 'volume.kubernetes.io/selected-node': 'n1' };
  await plane.admin(`PATCH ${CLAIMS}/waits`, { metadata: { annotations } });
  await bound('waits');
});

test('a node without a pool is given back to the scheduler', async () => {
  await plane.admin('POST /api/v1/nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name: 'bare' } });
  await plane.claim('bare', { storageClassName: 'local-wait' });
  const annotations = { 'volume.kubernetes.io/selected-node': 'bare' };
  await plane.admin(`PATCH ${CLAIMS}/bare`, { metadata: { annotations } });
  await plane.reported('bare', 'ProvisioningFailed', /node bare serves no pool of volumes/);
  await plane.settled(
    `${CLAIMS}/bare`,
    (one) => one['metadata'].annotations['volume.kubernetes.io/selected-node'] === undefined,
  );
});

// S-527: Storage counts in quotas, all of it and by class.
test('storage counts in quotas, all of it and by class', async () => {
  await plane.admin('POST /api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'small' } });
  await plane.admin('POST /api/v1/namespaces/small/resourcequotas', {
    apiVersion: 'v1',
    kind: 'ResourceQuota',
    metadata: { name: 'q' },
    spec: {
      hard: {
        'requests.storage': '3Gi',
        'local.storageclass.storage.k8s.io/requests.storage': '1Gi',
        'local-wait.storageclass.storage.k8s.io/persistentvolumeclaims': '1',
      },
    },
  });
  await plane.settled('/api/v1/namespaces/small/resourcequotas/q', ({ status }) => status?.used !== undefined);
  const ask = (name: string, storage: string, storageClassName: string) =>
    plane.ask('POST /api/v1/namespaces/small/persistentvolumeclaims', {
      as: ['admin', 'system:masters'],
      body: {
        apiVersion: 'v1',
        kind: 'PersistentVolumeClaim',
        metadata: { name },
        spec: { accessModes: ['ReadWriteOnce'], storageClassName, resources: { requests: { storage } } },
      },
    });
  assert.equal((await ask('a', '1Gi', 'local')).status, 201);
  assert.match((await ask('b', '1Mi', 'local')).json.message, /exceeded quota/);
  assert.equal((await ask('c', '1Gi', 'local-wait')).status, 201);
  assert.match((await ask('d', '1Mi', 'local-wait')).json.message, /persistentvolumeclaims/);
});

// S-526: A claim of an earlier version gets the volume that has its content.
test('a claim of an earlier version gets the volume that has its content, whatever its class', async () => {
  let uid = '';
  const upgraded = await startStoragePlane([], async (old, pool) => {
    const claim = (name: string, spec: object) =>
      old.admin(`POST ${CLAIMS}`, {
        apiVersion: 'v1',
        kind: 'PersistentVolumeClaim',
        metadata: { name },
        spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, ...spec },
      });
    const made = await claim('old', { storageClassName: '' });
    uid = made.metadata.uid;
    pool.volumes.set(uid, { bytes: 5 * 2 ** 30, format: 'raw' });
    pool.volumes.set(OLD, { bytes: 1, format: 'raw' });
  });
  try {
    const claim = await upgraded.settled(`${CLAIMS}/old`, isBound);
    assert.equal(claim['spec'].volumeName, `pvc-${uid}`);
    const volume = await upgraded.admin(`GET ${VOLUMES}/pvc-${uid}`);
    assert.equal(volume.spec.csi.volumeAttributes.format, 'raw');
    assert.equal(volume.spec.capacity.storage, '5Gi');
    assert.ok(upgraded.pool.volumes.has(OLD), 'content of nobody is left alone');
  } finally {
    await upgraded.stop();
  }
});
