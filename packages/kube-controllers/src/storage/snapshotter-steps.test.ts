import * as core from '../../../apimachinery/src/types/resource-types.ts';
import type { ControllerEnvironment } from '../../../client/src/controller/environment.ts';
import { NOW, stored, testTable } from '../../../client/src/run-step.fixture.ts';
import { POOL_DRIVER, SNAPSHOT_GROUP, SNAPSHOT_GROUP_SIZE } from '../../../cluster-rules/src/storage/pool-names.ts';
import { BEING_CREATED, BEING_DELETED, CONTENT_BOUND } from '../../../cluster-rules/src/storage/snapshot-plan.ts';
import * as kinds from '../../../cluster-rules/src/volume-snapshot/kinds.ts';
import { notedPools, poolNode } from './noted-pools.fixture.ts';
import { PoolCallError } from './pools.ts';
import { SnapshotterSteps } from './snapshotter-steps.ts';

type Content = kinds.VolumeSnapshotContent;
const snapshot = (name: string, annotations: Record<string, string> = {}) =>
  stored(kinds.VOLUME_SNAPSHOTS, name, {
    metadata: { annotations },
    spec: { source: { persistentVolumeClaimName: 'c' } },
  });
const content = (
  name: string,
  metadata: Partial<Content['metadata']> = {},
  spec: Partial<Content['spec']> = {},
  status: Content['status'] = {},
) =>
  stored(kinds.VOLUME_SNAPSHOT_CONTENTS, `snapcontent-uid-${name}`, {
    metadata: { finalizers: [CONTENT_BOUND], ...metadata },
    spec: {
      driver: POOL_DRIVER,
      deletionPolicy: 'Delete',
      source: { volumeHandle: `h-${name}` },
      volumeSnapshotRef: { kind: 'VolumeSnapshot', namespace: 'ns', name, uid: `uid-${name}` },
      ...spec,
    },
    status,
  });
const disk = (name: string, pool = 'pool-n1') =>
  stored(core.PERSISTENT_VOLUMES, `v-${name}`, {
    spec: { csi: { driver: POOL_DRIVER, volumeHandle: `h-${name}`, volumeAttributes: { pool } } },
  });
const group = { [SNAPSHOT_GROUP]: 'g', [SNAPSHOT_GROUP_SIZE]: '2' };
const going = { deletionTimestamp: NOW, finalizers: [CONTENT_BOUND] };
const marked = { ...going, annotations: { [BEING_DELETED]: 'yes' } };

const { signal } = new AbortController();
const make = (environment: ControllerEnvironment) =>
  new SnapshotterSteps(
    notedPools(environment, (call) =>
      call === 'inspect'
        ? { volumes: [], snapshots: [{ handle: 'there', usedBytes: 1 }] }
        : { snapshots: ['a', 'b'].map((name) => ({ handle: `uid-${name}`, bytes: 5, createdAt: NOW })) },
    ),
  );
const ofA = (steps: SnapshotterSteps) => steps.contents.get({ namespace: '', name: 'snapcontent-uid-a' })!;
const act = (steps: SnapshotterSteps) => steps.take(ofA(steps), signal);
const leave = (steps: SnapshotterSteps) => steps.leave(ofA(steps), signal);
const adopt = (steps: SnapshotterSteps) => steps.adopt(ofA(steps), signal);
const fail = (steps: SnapshotterSteps) => steps.fail(ofA(steps), new PoolCallError('NoSpace', 'no room'), signal);

const A = 'PATCH volumesnapshotcontents/snapcontent-uid-a';
const B = 'PATCH volumesnapshotcontents/snapcontent-uid-b';
const MARK = { metadata: { annotations: { [BEING_CREATED]: 'yes' } } };
const taken = (handle: string) => ({
  status: { snapshotHandle: `pool-n1/${handle}`, restoreSize: 5, readyToUse: true },
});
const LET_GO = [A, { metadata: { finalizers: null } }] as const;
const SAID = 'Failed to check and update snapshot content: no room';
testTable({ types: [...Object.values(core), ...Object.values(kinds)], make, act }, [
  {
    name: 'a content is marked before its snapshot is taken',
    objects: [snapshot('a'), content('a'), disk('a'), poolNode('n1')],
    writes: [
      [A, MARK],
      ['POST n1/createSnapshots', { snapshots: [{ handle: 'uid-a', volume: 'h-a' }] }],
      [`${A}/status`, taken('uid-a')],
    ],
  },
  {
    name: 'those of a group are taken in one call',
    objects: [...['a', 'b'].flatMap((name) => [snapshot(name, group), content(name), disk(name)]), poolNode('n1')],
    writes: [
      [A, MARK],
      [B, MARK],
      ['POST n1/createSnapshots', { snapshots: [{ handle: 'uid-a' }, { handle: 'uid-b' }] }],
      [`${A}/status`, taken('uid-a')],
      [`${B}/status`, taken('uid-b')],
    ],
  },
  {
    name: 'nothing of a group is taken before all of it is there',
    objects: [snapshot('a', group), content('a'), disk('a'), poolNode('n1')],
  },
  {
    name: 'volumes of two pools cannot be taken at one point in time',
    objects: [
      ...['a', 'b'].flatMap((name) => [snapshot(name, group), content(name)]),
      disk('a'),
      disk('b', 'pool-n2'),
      poolNode('n1'),
    ],
    error: /must be in one pool/,
  },
  {
    name: 'a content whose snapshot does not let it go yet stays',
    act: leave,
    objects: [content('a', going, {}, { snapshotHandle: 'pool-n1/uid-a' }), poolNode('n1')],
  },
  {
    name: 'a content that is let go deletes its snapshot in the pool first',
    act: leave,
    objects: [content('a', marked, {}, { snapshotHandle: 'pool-n1/uid-a' }), poolNode('n1')],
    writes: [['POST n1/deleteSnapshot', { handle: 'uid-a' }], LET_GO],
  },
  {
    name: 'so does one whose snapshot may have been taken, though nobody wrote it down',
    act: leave,
    objects: [
      content('a', { ...marked, annotations: { [BEING_DELETED]: 'yes', [BEING_CREATED]: 'yes' } }),
      disk('a'),
      poolNode('n1'),
    ],
    writes: [['POST n1/deleteSnapshot', { handle: 'uid-a' }], LET_GO],
  },
  {
    name: 'with the policy Retain the snapshot in the pool stays',
    act: leave,
    objects: [content('a', marked, { deletionPolicy: 'Retain' }, { snapshotHandle: 'pool-n1/uid-a' }), poolNode('n1')],
    writes: [LET_GO],
  },
  {
    name: 'a snapshot that somebody names is taken over when the pool has it',
    act: adopt,
    objects: [content('a', {}, { source: { snapshotHandle: 'pool-n1/there' } }), poolNode('n1')],
    writes: [['POST n1/inspect'], [`${A}/status`, { status: { snapshotHandle: 'pool-n1/there', readyToUse: true } }]],
  },
  {
    name: 'one that the pool does not have is named',
    act: adopt,
    objects: [content('a', {}, { source: { snapshotHandle: 'pool-n1/lost' } }), poolNode('n1')],
    error: /snapshot pool-n1\/lost is in no pool/,
    writes: [['POST n1/inspect']],
  },
  {
    name: 'a failure is reported',
    act: fail,
    objects: [content('a')],
    writes: [[`${A}/status`, { status: { readyToUse: false, error: { message: SAID, time: NOW } } }]],
    events: [`Warning SnapshotContentCheckandUpdateFailed ${SAID}`],
  },
  { name: 'and reported once', act: fail, objects: [content('a', {}, {}, { error: { message: SAID } })] },
]);
