/** The kinds of snapshot.storage.k8s.io/v1 and the classes of a fresh server. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createMemoryBackend } from '../../packages/apiserver/src/storage/memory-backend.ts';
import { eventually } from '../testkit/eventually.ts';
import { type InProcessControlPlane, startInProcess } from '../testkit/in-process-control-plane.ts';

const GROUP = '/apis/snapshot.storage.k8s.io/v1';
const SNAPSHOTS = `${GROUP}/namespaces/default/volumesnapshots`;
const CLASSES = '/apis/storage.k8s.io/v1/storageclasses';
const DEFINITIONS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
// biome-ignore lint/suspicious/noExplicitAny: an answer.
type Row = Record<string, any>;
const apiVersion = 'snapshot.storage.k8s.io/v1';

let plane: InProcessControlPlane;
before(async () => {
  plane = await startInProcess();
});
after(() => plane.stop());

const snapshot = (name: string, spec: object) => ({ apiVersion, kind: 'VolumeSnapshot', metadata: { name }, spec });
const content = (name: string, spec: object = {}) => ({
  apiVersion,
  kind: 'VolumeSnapshotContent',
  metadata: { name },
  spec: {
    deletionPolicy: 'Delete',
    driver: 'd',
    source: { volumeHandle: 'v' },
    volumeSnapshotRef: { name: 's', namespace: 'default' },
    ...spec,
  },
});

// S-521: VolumeSnapshot, VolumeSnapshotContent and VolumeSnapshotClass are served as external-snapshotter defines them;
//   its own definitions may be put in the place of ours.
test('discovery names the kinds, their short names and status', async () => {
  const { json } = await plane.send('GET', GROUP);
  const listed = json.resources.map(({ name, kind, shortNames, namespaced }: Record<string, unknown>) =>
    JSON.stringify([name, kind, shortNames ?? [], namespaced]),
  );
  assert.deepEqual(listed.sort(), [
    '["volumesnapshotclasses","VolumeSnapshotClass",["vsclass","vsclasses"],false]',
    '["volumesnapshotcontents","VolumeSnapshotContent",["vsc","vscs"],false]',
    '["volumesnapshotcontents/status","VolumeSnapshotContent",[],false]',
    '["volumesnapshots","VolumeSnapshot",["vs"],true]',
    '["volumesnapshots/status","VolumeSnapshot",[],true]',
  ]);
});

const REFUSED: readonly [what: string, object: { kind: string; [key: string]: unknown }, message: RegExp][] = [
  ['a snapshot of nothing', snapshot('none', { source: {} }), /exactly one of/],
  [
    'a snapshot of two things',
    snapshot('two', { source: { persistentVolumeClaimName: 'a', volumeSnapshotContentName: 'b' } }),
    /exactly one of volumeSnapshotContentName and persistentVolumeClaimName must be set/,
  ],
  [
    'a snapshot of an empty class',
    snapshot('class', { source: { persistentVolumeClaimName: 'a' }, volumeSnapshotClassName: '' }),
    /volumeSnapshotClassName must not be the empty string when set/,
  ],
  ['a content of nothing', content('none', { source: {} }), /exactly one of volumeHandle and snapshotHandle/],
  [
    'a content of no namespace',
    content('nowhere', { volumeSnapshotRef: { name: 's' } }),
    /both spec.volumeSnapshotRef.name and spec.volumeSnapshotRef.namespace must be set/,
  ],
  ['a content of an unknown policy', content('policy', { deletionPolicy: 'Recycle' }), /Unsupported value: "Recycle"/],
];
for (const [what, object, message] of REFUSED) {
  test(`${what} is refused`, async () => {
    const at = object.kind === 'VolumeSnapshot' ? SNAPSHOTS : `${GROUP}/volumesnapshotcontents`;
    const { status, json } = await plane.send('POST', at, object);
    assert.equal(status, 422, JSON.stringify(json));
    assert.match(json.message, message);
  });
}

test('the source of a snapshot does not change, and its status is written apart', async () => {
  const made = await plane.send('POST', SNAPSHOTS, {
    ...snapshot('a', { source: { persistentVolumeClaimName: 'a' } }),
    status: { readyToUse: true },
  });
  assert.equal(made.status, 201, JSON.stringify(made.json));
  assert.equal(made.json.status, undefined);
  const patch = (at: string, body: object) => plane.send('PATCH', at, body, 'application/merge-patch+json');
  const moved = await patch(`${SNAPSHOTS}/a`, { spec: { source: { persistentVolumeClaimName: 'b' } } });
  assert.match(moved.json.message, /persistentVolumeClaimName is immutable/);
  const ready = await patch(`${SNAPSHOTS}/a/status`, { status: { readyToUse: true, restoreSize: '1Gi' } });
  assert.equal(ready.status, 200, JSON.stringify(ready.json));
  const columns = ['Name', 'ReadyToUse', 'SourcePVC', 'SourceSnapshotContent', 'RestoreSize', 'SnapshotClass'];
  const { json } = await plane.send('GET', `${DEFINITIONS}/volumesnapshots.snapshot.storage.k8s.io`);
  const shown = json.spec.versions[0].additionalPrinterColumns.map(({ name }: { name: string }) => name);
  assert.deepEqual(shown, [...columns.slice(1), 'SnapshotContent', 'CreationTime', 'Age']);
});

// S-521
test('somebody may put another definition in the place of ours', async () => {
  const at = `${DEFINITIONS}/volumesnapshotclasses.snapshot.storage.k8s.io`;
  const { json } = await plane.send('GET', at);
  json.spec.versions[0].schema.openAPIV3Schema.properties.more = { type: 'string' };
  const put = await plane.send('PUT', at, json);
  assert.equal(put.status, 200, JSON.stringify(put.json));
  assert.equal(put.warnings, '');
  const made = {
    apiVersion,
    kind: 'VolumeSnapshotClass',
    metadata: { name: 'm' },
    driver: 'd',
    deletionPolicy: 'Retain',
    more: 'x',
  };
  // The definition is taken up behind the answer.
  const classes = `${GROUP}/volumesnapshotclasses?dryRun=All`;
  await eventually(async () => (await plane.send('POST', classes, made)).json.more === 'x');
});

// S-522: A fresh server has the StorageClasses `local` and `local-wait` and the VolumeSnapshotClass `local`; edited and
//   deleted ones stay so.
test('a fresh server has classes, and what a user makes of them stays', async () => {
  const backend = createMemoryBackend();
  let other = await startInProcess({ backend });
  const classes = await other.send('GET', CLASSES);
  const listed = classes.json.items.map(
    ({ metadata, provisioner, volumeBindingMode, reclaimPolicy, allowVolumeExpansion }: Row) => [
      metadata.name,
      metadata.annotations?.['storageclass.kubernetes.io/is-default-class'],
      provisioner,
      volumeBindingMode,
      reclaimPolicy,
      allowVolumeExpansion,
    ],
  );
  assert.deepEqual(listed, [
    ['local', 'true', 'local.coracle.dev', 'Immediate', 'Delete', true],
    ['local-wait', undefined, 'local.coracle.dev', 'WaitForFirstConsumer', 'Delete', true],
  ]);
  const snapshots = await other.send('GET', `${GROUP}/volumesnapshotclasses/local`);
  assert.equal(snapshots.json.driver, 'local.coracle.dev');
  await other.send('DELETE', `${CLASSES}/local-wait`);
  const edit = { metadata: { annotations: { 'storageclass.kubernetes.io/is-default-class': 'false' } } };
  await other.send('PATCH', `${CLASSES}/local`, edit, 'application/merge-patch+json');
  await other.stop();
  other = await startInProcess({ backend });
  const later = await other.send('GET', CLASSES);
  assert.deepEqual(
    later.json.items.map(({ metadata }: Row) => [metadata.name, Object.values(metadata.annotations)]),
    [['local', ['false']]],
  );
  await other.stop();
});
