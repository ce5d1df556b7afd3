/** VolumeSnapshots: taken, bound to contents, restored from, deleted in order, several at one point in time. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { CLAIMS, type Row, type StoragePlane, startStoragePlane } from '../testkit/storage-plane.ts';

const GROUP = '/apis/snapshot.storage.k8s.io/v1';
const SNAPSHOTS = `${GROUP}/namespaces/default/volumesnapshots`;
const CONTENTS = `${GROUP}/volumesnapshotcontents`;
const apiVersion = 'snapshot.storage.k8s.io/v1';
let plane: StoragePlane;
before(async () => {
  plane = await startStoragePlane();
});
after(() => plane.stop());

const bound = (name: string) => plane.settled(`${CLAIMS}/${name}`, ({ status }) => status?.phase === 'Bound');
const gone = (path: string) => plane.settled(path, (object) => Object.keys(object).length === 0);
const snapshot = (name: string, spec: object, annotations: object = {}): Promise<Row> =>
  plane.admin(`POST ${SNAPSHOTS}`, { apiVersion, kind: 'VolumeSnapshot', metadata: { name, annotations }, spec });
const of = (persistentVolumeClaimName: string) => ({ source: { persistentVolumeClaimName } });
const ready = (name: string) => plane.settled(`${SNAPSHOTS}/${name}`, ({ status }) => status?.readyToUse === true);
const fails = (name: string, message: RegExp) =>
  plane.settled(`${SNAPSHOTS}/${name}`, ({ status }) => message.test(status?.error?.message ?? ''));

// S-528: A VolumeSnapshot of a claim of class `local` is taken, bound to a content both ways and reported; claims are
//   made from it; it goes with its content and its space, or keeps them with policy Retain.
// Compat Types, P1, yes: VolumeSnapshots
test('a snapshot of a claim gets a content, both name each other, and it becomes ready', async () => {
  const claim = await plane.claim('a');
  await bound('a');
  const { metadata } = await snapshot('a', of('a'));
  const { spec, status, metadata: now } = await ready('a');
  assert.equal(spec.volumeSnapshotClassName, 'local');
  assert.equal(status.boundVolumeSnapshotContentName, `snapcontent-${metadata.uid}`);
  assert.equal(status.restoreSize, '1Gi');
  assert.equal(status.creationTime, '2030-01-01T00:00:00Z');
  assert.deepEqual(now.finalizers.sort(), [
    'snapshot.storage.kubernetes.io/volumesnapshot-as-source-protection',
    'snapshot.storage.kubernetes.io/volumesnapshot-bound-protection',
  ]);
  const content = await plane.admin(`GET ${CONTENTS}/snapcontent-${metadata.uid}`);
  assert.deepEqual(content.spec.source, { volumeHandle: claim['metadata'].uid });
  assert.equal(content.spec.volumeSnapshotRef.uid, metadata.uid);
  assert.equal(content.spec.sourceVolumeMode, 'Filesystem');
  assert.equal(content.status.snapshotHandle, `pool-1/${metadata.uid}`);
  assert.deepEqual(content.metadata.finalizers, [
    'snapshot.storage.kubernetes.io/volumesnapshotcontent-bound-protection',
  ]);
  assert.equal(plane.pool.snapshots.get(metadata.uid)?.volume, claim['metadata'].uid);
  // The claim is let go when no snapshot of it is under way.
  await plane.settled(`${CLAIMS}/a`, (one) => one['metadata'].finalizers.join() === 'kubernetes.io/pvc-protection');
  await plane.reported('a', 'SnapshotReady');
});

// S-528
test('a claim is made from a snapshot, and asks for no less than it holds', async () => {
  const { metadata } = await plane.admin(`GET ${SNAPSHOTS}/a`);
  const dataSource = { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name: 'a' };
  const made = await plane.claim('restored', { dataSource });
  const { spec } = await bound('restored');
  assert.equal(spec.dataSourceRef.name, 'a');
  assert.equal(plane.pool.volumes.get(made['metadata'].uid)?.from, `snapshot/${metadata.uid}`);
  await plane.claim('small', { dataSource, resources: { requests: { storage: '1Mi' } } });
  await plane.reported('small', 'ProvisioningFailed', /is less than the size 1073741824 for the source snapshot a/);
  await plane.claim('block', { dataSource, volumeMode: 'Block' });
  await plane.reported('block', 'ProvisioningFailed', /modifies the mode of the source volume/);
  for (const name of ['small', 'block']) await plane.admin(`DELETE ${CLAIMS}/${name}`);
  for (const name of ['small', 'block']) await gone(`${CLAIMS}/${name}`);
});

test('a deleted snapshot goes with its content and its space', async () => {
  const { metadata } = await plane.admin(`GET ${SNAPSHOTS}/a`);
  await plane.admin(`DELETE ${SNAPSHOTS}/a`);
  await gone(`${SNAPSHOTS}/a`);
  await gone(`${CONTENTS}/snapcontent-${metadata.uid}`);
  assert.equal(plane.pool.snapshots.has(metadata.uid), false);
});

// S-528
test('with policy Retain the content stays, and can be given to another snapshot', async () => {
  await plane.claim('r');
  await bound('r');
  await plane.admin(`POST ${GROUP}/volumesnapshotclasses`, {
    apiVersion,
    kind: 'VolumeSnapshotClass',
    metadata: { name: 'keep' },
    driver: 'local.coracle.dev',
    deletionPolicy: 'Retain',
  });
  const { metadata } = await snapshot('r', { ...of('r'), volumeSnapshotClassName: 'keep' });
  await ready('r');
  await plane.admin(`DELETE ${SNAPSHOTS}/r`);
  await gone(`${SNAPSHOTS}/r`);
  assert.ok(plane.pool.snapshots.has(metadata.uid));
  const kept = await plane.admin(`GET ${CONTENTS}/snapcontent-${metadata.uid}`);
  await plane.admin(`POST ${CONTENTS}`, {
    apiVersion,
    kind: 'VolumeSnapshotContent',
    metadata: { name: 'again' },
    spec: {
      driver: 'local.coracle.dev',
      deletionPolicy: 'Delete',
      source: { snapshotHandle: kept.status.snapshotHandle },
      volumeSnapshotRef: { namespace: 'default', name: 'again' },
    },
  });
  const again = await snapshot('again', { source: { volumeSnapshotContentName: 'again' } });
  await ready('again');
  const content = await plane.admin(`GET ${CONTENTS}/again`);
  assert.equal(content.spec.volumeSnapshotRef.uid, again['metadata'].uid);
  await plane.admin(`DELETE ${SNAPSHOTS}/again`);
  await gone(`${CONTENTS}/again`);
  assert.equal(plane.pool.snapshots.has(metadata.uid), false);
});

const FAILURES: readonly [what: string, spec: object, message: RegExp][] = [
  ['of a claim that is not there', of('nowhere'), /persistentvolumeclaim "nowhere" not found/],
  ['of an unknown class', { ...of('r'), volumeSnapshotClassName: 'none' }, /volumesnapshotclass.* "none" not found/],
  [
    'of a content that is not there',
    { source: { volumeSnapshotContentName: 'x' } },
    /VolumeSnapshotContent is missing/,
  ],
];
for (const [index, [what, spec, message]] of FAILURES.entries()) {
  test(`a snapshot ${what} says so`, async () => {
    await snapshot(`fails-${index}`, spec);
    const { status } = await fails(`fails-${index}`, message);
    assert.equal(status.readyToUse, false);
    await plane.admin(`DELETE ${SNAPSHOTS}/fails-${index}`);
    await gone(`${SNAPSHOTS}/fails-${index}`);
  });
}

// S-530: Nobody gets a snapshot that is another's by naming its content.
test('a snapshot does not get a content that is another’s', async () => {
  const { metadata } = await snapshot('mine', of('r'));
  await ready('mine');
  const name = `snapcontent-${metadata.uid}`;
  await snapshot('thief', { source: { volumeSnapshotContentName: name } });
  await fails('thief', /expecting a pre-provisioned one|bound to a different snapshot/);
});

// S-529: VolumeSnapshots of one group are taken by one call, when all of them are there.
test('snapshots of a group are taken by one call, when all of them are there', async () => {
  const annotations = { 'coracle.dev/snapshot-group': 'g', 'coracle.dev/snapshot-group-size': '3' };
  for (const name of ['g1', 'g2', 'g3']) await plane.claim(name);
  for (const name of ['g1', 'g2', 'g3']) await bound(name);
  const before = plane.pool.calls.length;
  const calls = () => plane.pool.calls.slice(before).filter((call) => call.startsWith('createSnapshots'));
  await snapshot('g1', of('g1'), annotations);
  await snapshot('g2', of('g2'), annotations);
  await plane.settled(`${SNAPSHOTS}/g2`, ({ status }) => status?.boundVolumeSnapshotContentName !== undefined);
  assert.deepEqual(calls(), []);
  await snapshot('g3', of('g3'), annotations);
  for (const name of ['g1', 'g2', 'g3']) await ready(name);
  // A pass that has not seen the end of the first may ask the same again, which changes nothing.
  assert.equal(new Set(calls()).size, 1);
  assert.equal(calls()[0]?.split('"volume"').length, 4, 'all three in one call');
});

test('what the pool refuses is reported on the snapshot, and goes with a later success', async () => {
  plane.pool.refuse.set('createSnapshots', 'Conflict');
  await snapshot('refused', of('r'));
  await fails('refused', /Failed to check and update snapshot content: refused: Conflict/);
  const { status } = await ready('refused');
  assert.equal(status.error, undefined);
});

// S-531: The snapshot controller stands back while upstream's holds its Lease.
test('our controller stands back while upstream’s holds its Lease', async () => {
  const renewTime = new Date().toISOString().replace('Z', '000Z');
  await plane.admin('POST /apis/coordination.k8s.io/v1/namespaces/kube-system/leases', {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name: 'snapshot-controller-leader' },
    spec: { holderIdentity: 'theirs', leaseDurationSeconds: 3600, renewTime },
  });
  const { metadata } = await snapshot('theirs', of('r'));
  // A claim that is provisioned meanwhile shows that time has passed.
  await plane.claim('meanwhile');
  await bound('meanwhile');
  const held = await plane.admin(`GET ${SNAPSHOTS}/theirs`);
  assert.equal(held.metadata.finalizers, undefined);
  assert.equal(held.metadata.uid, metadata.uid);
});
