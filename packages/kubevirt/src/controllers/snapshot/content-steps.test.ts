import { STORAGE_CLASSES } from '../../../../apimachinery/src/types/resource-types.ts';
import type { ControllerEnvironment } from '../../../../client/src/controller/environment.ts';
import { createEventRecorder } from '../../../../client/src/events/recorder.ts';
import { NOW, stored } from '../../../../client/src/run-step.fixture.ts';
import {
  VOLUME_SNAPSHOT_CLASSES,
  VOLUME_SNAPSHOTS,
  type VolumeSnapshot,
} from '../../../../cluster-rules/src/volume-snapshot/kinds.ts';
import {
  VIRTUAL_MACHINE_RESTORES,
  VIRTUAL_MACHINE_SNAPSHOT_CONTENTS,
  VIRTUAL_MACHINE_SNAPSHOTS,
  type VirtualMachineSnapshot,
  type VirtualMachineSnapshotContent,
} from '../../kinds/kubevirt.ts';
import { INCLUDE_MEMORY } from '../../rules/memory-state/resume-request.ts';
import { CONTENT_FINALIZER, SOURCE_FINALIZER } from '../../rules/snapshot/snapshot-names.ts';
import { instance, machine, REFUSED, testSteps } from '../step.fixture.ts';
import { ContentSteps } from './content-steps.ts';
import { snapshotStores } from './snapshot-stores.ts';

const snapshot = (metadata: Partial<VirtualMachineSnapshot['metadata']> = {}) =>
  stored(VIRTUAL_MACHINE_SNAPSHOTS, 's', {
    metadata: { finalizers: ['x'], ...metadata },
    spec: { source: { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: 'vm' } },
    status: { phase: 'InProgress' },
  });
const content = (status: VirtualMachineSnapshotContent['status'] = {}) =>
  stored(VIRTUAL_MACHINE_SNAPSHOT_CONTENTS, 'c', {
    metadata: { finalizers: [CONTENT_FINALIZER] },
    spec: {
      virtualMachineSnapshotName: 's',
      source: {},
      volumeBackups: [
        {
          volumeName: 'd',
          volumeSnapshotName: 'vs',
          persistentVolumeClaim: { metadata: { name: 'disk' }, spec: { storageClassName: 'fast' } },
        },
      ],
    },
    status,
  });
const taken = (status: VolumeSnapshot['status']) => stored(VOLUME_SNAPSHOTS, 'vs', { status });
const READY = { creationTime: NOW, readyToUse: true };
const CLUSTER = [
  stored(STORAGE_CLASSES, 'fast', { provisioner: 'p' }),
  stored(VOLUME_SNAPSHOT_CLASSES, 'vsc', { driver: 'p', deletionPolicy: 'Delete' }),
  instance({ phase: 'Running', conditions: [{ type: 'AgentConnected', status: 'True' }] }),
];
const LOCKED = [...CLUSTER, machine({}, { snapshotInProgress: 's' }, { finalizers: [SOURCE_FINALIZER] })];

const make = (environment: ControllerEnvironment) =>
  new ContentSteps({
    ...environment,
    stores: snapshotStores(environment.informers),
    restores: environment.informers.of(VIRTUAL_MACHINE_RESTORES),
    events: createEventRecorder(environment.client, { component: 'test', clock: environment.clock }),
  });
const act = (steps: ContentSteps) => steps.reconcile(steps.contents.list()[0]!);

const FREEZE = 'PUT virtualmachineinstances/vm/freeze';
const THAW = ['PUT virtualmachineinstances/vm/unfreeze'] as const;
const CREATE = [
  'POST volumesnapshots',
  { metadata: { name: 'vs' }, spec: { volumeSnapshotClassName: 'vsc' } },
] as const;
const META = 'PATCH virtualmachinesnapshotcontents/c';
const STATUS = `${META}/status`;
const CREATED = 'Normal SuccessfulVolumeSnapshotCreate Successfully created VolumeSnapshot vs';
const SOON = { requeueAfterMs: 5000 };
testSteps({ make, act }, [
  {
    name: 'the guest is frozen before its volumes are saved',
    objects: [content(), snapshot(), ...LOCKED],
    outcome: undefined,
    writes: [[FREEZE], CREATE, [STATUS, { status: { readyToUse: false, creationTime: undefined } }]],
    events: [CREATED],
  },
  {
    name: 'a guest whose memory is saved is not frozen, and its content waits for that',
    objects: [content(), snapshot({ annotations: { [INCLUDE_MEMORY]: 'true' } }), ...LOCKED],
    outcome: undefined,
    writes: [CREATE],
    events: [CREATED],
  },
  {
    name: 'a guest that refuses to be frozen is an error of the content, and is asked again',
    objects: [content(), snapshot(), ...LOCKED],
    refuse: { [FREEZE]: REFUSED },
    outcome: SOON,
    writes: [[FREEZE], [STATUS, { status: { readyToUse: false, error: { time: NOW, message: 'not now' } } }]],
  },
  {
    name: 'a source that is not locked is not frozen',
    objects: [content(), snapshot(), ...CLUSTER, machine({})],
    outcome: SOON,
    writes: [[STATUS, { status: { error: { message: 'attempting to freeze unlocked VM' } } }]],
  },
  {
    name: 'the guest goes on when all volumes are saved',
    objects: [content(), snapshot(), taken(READY), ...LOCKED],
    outcome: undefined,
    writes: [THAW, [STATUS, { status: READY }]],
  },
  {
    name: 'the guest stays frozen until then',
    objects: [content(), snapshot(), taken({}), ...LOCKED],
    outcome: undefined,
    writes: [[STATUS, { status: { readyToUse: false, creationTime: undefined } }]],
  },
  {
    name: 'a volume that was saved and is gone is missed, and not saved anew',
    objects: [content({ creationTime: NOW }), snapshot(), ...LOCKED],
    outcome: undefined,
    writes: [[STATUS, { status: { error: { message: 'VolumeSnapshots (vs) missing' } } }]],
    events: ['Warning VolumeSnapshotMissing VolumeSnapshot vs no longer exists'],
  },
  {
    name: 'a snapshot that is deleted has its guest go on, and lets its content go',
    objects: [content(), snapshot({ deletionTimestamp: NOW }), ...LOCKED],
    outcome: undefined,
    writes: [THAW, [META, { metadata: { finalizers: null } }]],
  },
  {
    name: 'a content without a snapshot that was never saved is removed',
    objects: [content(), ...LOCKED],
    outcome: undefined,
    writes: [
      [META, { metadata: { finalizers: null } }],
      ['DELETE virtualmachinesnapshotcontents/c', { preconditions: { uid: 'uid-c' } }],
    ],
  },
]);
