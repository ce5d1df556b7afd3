import * as core from '../../../apimachinery/src/types/resource-types.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '../../../apimachinery/src/types/types.ts';
import type { ControllerEnvironment } from '../../../client/src/controller/environment.ts';
import { NOW, stored, testTable } from '../../../client/src/run-step.fixture.ts';
import { BIND_COMPLETED, STORAGE_PROVISIONER } from '../../../cluster-rules/src/storage/claim-step.ts';
import { VolumeSteps } from './volume-steps.ts';

type ClaimSpec = NonNullable<PersistentVolumeClaim['spec']>;
const SIZE = { resources: { requests: { storage: '1Gi' } }, accessModes: ['ReadWriteOnce'] };
const claim = (
  spec: Partial<ClaimSpec> = {},
  metadata: Partial<PersistentVolumeClaim['metadata']> = {},
  status: PersistentVolumeClaim['status'] = { phase: 'Pending' },
) =>
  stored(core.PERSISTENT_VOLUME_CLAIMS, 'c', {
    metadata,
    spec: { ...SIZE, storageClassName: 'fast', volumeMode: 'Filesystem', ...spec },
    status,
  });
const BOUND = claim({ volumeName: 'v' }, { annotations: { [BIND_COMPLETED]: 'yes' } }, { phase: 'Bound' });
const volume = (spec: Partial<PersistentVolume['spec']> = {}, phase = 'Available') =>
  stored(core.PERSISTENT_VOLUMES, 'v', {
    spec: {
      capacity: { storage: '1Gi' },
      accessModes: SIZE.accessModes,
      storageClassName: 'fast',
      volumeMode: 'Filesystem',
      persistentVolumeReclaimPolicy: 'Retain',
      ...spec,
    },
    status: { phase },
  });
const FAST = stored(core.STORAGE_CLASSES, 'fast', {
  metadata: { annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } },
  provisioner: 'p',
  volumeBindingMode: 'Immediate',
});
const taken = { claimRef: { kind: 'PersistentVolumeClaim', namespace: 'ns', name: 'c', uid: 'uid-c' } };

const { signal } = new AbortController();
const make = (environment: ControllerEnvironment) => new VolumeSteps(environment, () => {});
const syncVolume = (steps: VolumeSteps) => steps.syncVolume(steps.volumes.list()[0]!, signal);
const act = (steps: VolumeSteps) => steps.syncClaim(steps.claims.list()[0]!, signal);

const CLAIM = 'PATCH persistentvolumeclaims/c';
const VOLUME = 'PATCH persistentvolumes/v';
testTable({ types: Object.values(core), make, act }, [
  {
    name: 'a claim takes the volume that fits: first the volume says so, then the claim',
    objects: [claim(), volume(), FAST],
    writes: [
      [VOLUME, { spec: { claimRef: { name: 'c', uid: 'uid-c' } } }],
      [`${VOLUME}/status`, { status: { phase: 'Bound' } }],
      [CLAIM, { spec: { volumeName: 'v' }, metadata: { annotations: { [BIND_COMPLETED]: 'yes' } } }],
      [`${CLAIM}/status`, { status: { phase: 'Bound', capacity: { storage: '1Gi' } } }],
    ],
  },
  {
    name: 'a claim that no volume fits is given to the provisioner of its class',
    objects: [claim(), FAST],
    writes: [[CLAIM, { metadata: { annotations: { [STORAGE_PROVISIONER]: 'p' } } }]],
    events: [
      `Normal ExternalProvisioning Waiting for a volume to be created either by the external provisioner 'p' or manually by the system administrator. If volume creation is delayed, please verify that the provisioner is running and correctly registered.`,
    ],
  },
  {
    name: 'a claim of a class that waits for its Pod is left until there is one',
    objects: [claim(), { ...FAST, volumeBindingMode: 'WaitForFirstConsumer' }],
    events: ['Normal WaitForFirstConsumer waiting for first consumer to be created before binding'],
  },
  {
    name: 'a claim that names no class gets that of the cluster',
    objects: [stored(core.PERSISTENT_VOLUME_CLAIMS, 'c', { spec: SIZE, status: { phase: 'Pending' } }), FAST],
    writes: [[CLAIM, { spec: { storageClassName: 'fast' } }]],
  },
  {
    name: 'a claim that goes is given nothing any more',
    objects: [claim({}, { deletionTimestamp: NOW, finalizers: ['x'] }), volume(), FAST],
  },
  {
    name: 'a bound claim whose volume is gone is lost',
    objects: [BOUND],
    writes: [[`${CLAIM}/status`, { status: { phase: 'Lost' } }]],
    events: ['Warning ClaimLost Bound claim has lost its PersistentVolume. Data on the volume is lost!'],
  },
  {
    name: 'a volume that nobody claims is available',
    act: syncVolume,
    objects: [volume({}, 'Pending')],
    writes: [[`${VOLUME}/status`, { status: { phase: 'Available' } }]],
  },
  {
    name: 'a volume whose claim is gone is released',
    act: syncVolume,
    objects: [volume(taken, 'Bound')],
    writes: [[`${VOLUME}/status`, { status: { phase: 'Released' } }]],
  },
  {
    name: 'so is one whose claim was made anew under the same name',
    act: syncVolume,
    objects: [volume(taken, 'Bound'), claim({}, { uid: 'another' })],
    writes: [[`${VOLUME}/status`, { status: { phase: 'Released' } }]],
  },
]);
