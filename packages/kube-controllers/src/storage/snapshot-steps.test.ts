import * as core from '../../../apimachinery/src/types/resource-types.ts';
import type { PersistentVolumeClaim } from '../../../apimachinery/src/types/types.ts';
import { NOW, stored, testTable } from '../../../client/src/run-step.fixture.ts';
import {
  AS_SOURCE,
  BEING_DELETED,
  CLAIM_AS_SOURCE,
  SNAPSHOT_BOUND,
} from '../../../cluster-rules/src/storage/snapshot-plan.ts';
import * as kinds from '../../../cluster-rules/src/volume-snapshot/kinds.ts';
import { SnapshotProblem, SnapshotSteps } from './snapshot-steps.ts';

const snapshot = (
  metadata: Partial<kinds.VolumeSnapshot['metadata']> = {},
  spec: Partial<kinds.VolumeSnapshot['spec']> = {},
  status: kinds.VolumeSnapshot['status'] = {},
) =>
  stored(kinds.VOLUME_SNAPSHOTS, 's', {
    metadata: { finalizers: [AS_SOURCE, SNAPSHOT_BOUND], ...metadata },
    spec: { source: { persistentVolumeClaimName: 'c' }, volumeSnapshotClassName: 'vsc', ...spec },
    status,
  });
const claim = (finalizers: string[] = [], status: PersistentVolumeClaim['status'] = { phase: 'Bound' }) =>
  stored(core.PERSISTENT_VOLUME_CLAIMS, 'c', {
    metadata: { finalizers, annotations: { 'pv.kubernetes.io/bind-completed': 'yes' } },
    spec: { volumeName: 'v' },
    status,
  });
const DISK = [
  stored(core.PERSISTENT_VOLUMES, 'v', {
    spec: {
      csi: { driver: 'p', volumeHandle: 'h' },
      claimRef: { kind: 'PersistentVolumeClaim', namespace: 'ns', name: 'c', uid: 'uid-c' },
    },
    status: { phase: 'Bound' },
  }),
  stored(kinds.VOLUME_SNAPSHOT_CLASSES, 'vsc', {
    metadata: { annotations: { 'snapshot.storage.kubernetes.io/is-default-class': 'true' } },
    driver: 'p',
    deletionPolicy: 'Delete',
  }),
];
const NAME = 'snapcontent-uid-s';
const content = (
  status: kinds.VolumeSnapshotContent['status'] = {},
  annotations: Record<string, string> = {},
  uid = 'uid-s',
) =>
  stored(kinds.VOLUME_SNAPSHOT_CONTENTS, NAME, {
    metadata: { annotations, finalizers: ['x'] },
    spec: {
      driver: 'p',
      deletionPolicy: 'Delete',
      source: { volumeHandle: 'h' },
      volumeSnapshotRef: { kind: 'VolumeSnapshot', namespace: 'ns', name: 's', uid },
    },
    status,
  });

const { signal } = new AbortController();
const first = (steps: SnapshotSteps) => steps.snapshots.list()[0]!;
const act = (steps: SnapshotSteps) => steps.sync(first(steps), signal);
const leave = (steps: SnapshotSteps) => steps.leave(first(steps), signal);
const report = (steps: SnapshotSteps) => steps.report(first(steps), new SnapshotProblem('Why', 'for this'), signal);

const SNAPSHOT = 'PATCH volumesnapshots/s';
const CLAIM = 'PATCH persistentvolumeclaims/c';
const CONTENT = `volumesnapshotcontents/${NAME}`;
const types = [...Object.values(core), ...Object.values(kinds)];
testTable({ types, make: (environment) => new SnapshotSteps(environment), act }, [
  {
    name: 'a snapshot holds itself before anything is made for it',
    objects: [snapshot({ finalizers: [] }), claim(), ...DISK],
    writes: [[SNAPSHOT, { metadata: { finalizers: [AS_SOURCE, SNAPSHOT_BOUND] } }]],
  },
  {
    name: 'its claim is held, and then its content is made',
    objects: [snapshot(), claim(), ...DISK],
    writes: [
      [CLAIM, { metadata: { finalizers: [CLAIM_AS_SOURCE] } }],
      ['POST volumesnapshotcontents', { metadata: { name: NAME }, spec: { driver: 'p' } }],
    ],
    events: ['Normal CreatingSnapshot Waiting for a snapshot ns/s to be created by the CSI driver.'],
  },
  {
    name: 'a snapshot that names no class gets that of the driver',
    objects: [
      stored(kinds.VOLUME_SNAPSHOTS, 's', {
        metadata: { finalizers: [AS_SOURCE, SNAPSHOT_BOUND] },
        spec: { source: { persistentVolumeClaimName: 'c' } },
      }),
      claim(),
      ...DISK,
    ],
    writes: [[SNAPSHOT, { spec: { volumeSnapshotClassName: 'vsc' } }]],
  },
  {
    name: 'a class that does not exist is named',
    objects: [snapshot({}, { volumeSnapshotClassName: 'none' }), claim(), ...DISK],
    error: /volumesnapshotclass.snapshot.storage.k8s.io "none" not found/,
  },
  {
    name: 'a content of another snapshot is not taken',
    objects: [snapshot(), claim(), ...DISK, content({}, {}, 'another')],
    error: /is bound to a different snapshot/,
  },
  {
    name: 'a content that went is not made anew',
    objects: [snapshot({}, {}, { boundVolumeSnapshotContentName: NAME }), claim(), ...DISK],
    error: /VolumeSnapshotContent is missing/,
  },
  {
    name: 'a snapshot that is ready says so, and its claim is held no more',
    objects: [snapshot(), claim([CLAIM_AS_SOURCE]), ...DISK, content({ readyToUse: true, creationTime: 1e18 })],
    writes: [
      [`${SNAPSHOT}/status`, { status: { readyToUse: true, boundVolumeSnapshotContentName: NAME } }],
      [CLAIM, { metadata: { finalizers: [] } }],
    ],
    events: [
      'Normal SnapshotCreated Snapshot ns/s was successfully created by the CSI driver.',
      'Normal SnapshotReady Snapshot ns/s is ready to use.',
    ],
  },
  {
    name: 'a snapshot that is deleted marks its content first',
    act: leave,
    objects: [snapshot({ deletionTimestamp: NOW }), content()],
    writes: [[`PATCH ${CONTENT}`, { metadata: { annotations: { [BEING_DELETED]: 'yes' } } }]],
  },
  {
    name: 'then the content goes, and the snapshot waits for that',
    act: leave,
    objects: [snapshot({ deletionTimestamp: NOW }), content({}, { [BEING_DELETED]: 'yes' })],
    writes: [[`DELETE ${CONTENT}`]],
  },
  {
    name: 'a snapshot without a content may go',
    act: leave,
    objects: [snapshot({ deletionTimestamp: NOW })],
    writes: [[SNAPSHOT, { metadata: { finalizers: [] } }]],
  },
  {
    name: 'a problem is reported',
    act: report,
    objects: [snapshot()],
    writes: [[`${SNAPSHOT}/status`, { status: { readyToUse: false, error: { message: 'for this', time: NOW } } }]],
    events: ['Warning Why for this'],
  },
  { name: 'and reported once', act: report, objects: [snapshot({}, {}, { error: { message: 'for this' } })] },
]);
