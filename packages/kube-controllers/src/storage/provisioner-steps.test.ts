import { ApiError } from '../../../apimachinery/src/meta/status.ts';
import * as core from '../../../apimachinery/src/types/resource-types.ts';
import type { PersistentVolumeClaim } from '../../../apimachinery/src/types/types.ts';
import type { ControllerEnvironment } from '../../../client/src/controller/environment.ts';
import { stored, testTable } from '../../../client/src/run-step.fixture.ts';
import { SELECTED_NODE } from '../../../cluster-rules/src/storage/claim-step.ts';
import { POOL_DRIVER } from '../../../cluster-rules/src/storage/pool-names.ts';
import { notedPools, poolNode } from './noted-pools.fixture.ts';
import { ProvisionerSteps } from './provisioner-steps.ts';

const claim = (annotations: Record<string, string> = {}, spec: Partial<PersistentVolumeClaim['spec']> = {}) =>
  stored(core.PERSISTENT_VOLUME_CLAIMS, 'c', {
    metadata: { annotations },
    spec: {
      resources: { requests: { storage: '1Gi' } },
      accessModes: ['ReadWriteOnce'],
      storageClassName: 'fast',
      ...spec,
    },
  });
const storageClass = (parameters: Record<string, string> = {}) =>
  stored(core.STORAGE_CLASSES, 'fast', { provisioner: POOL_DRIVER, reclaimPolicy: 'Delete', parameters });
const full = new ApiError({ code: 507, reason: 'NoSpace', message: 'no room' });
const exists = new ApiError({ code: 409, reason: 'AlreadyExists', message: 'there' });

/** Free bytes by node: what pools reply to `inspect`. */
const FREE: Readonly<Record<string, number>> = { n1: 1, n2: 2 };
const { signal } = new AbortController();
const make = (environment: ControllerEnvironment) => {
  const volume = { handle: 'uid-c', bytes: 2 ** 30, format: 'raw' };
  const replyOf = (call: string, name: string) =>
    call === 'inspect' ? { freeBytes: FREE[name], volumes: [], snapshots: [] } : volume;
  return new ProvisionerSteps(notedPools(environment, replyOf), () => {});
};
const act = async (steps: ProvisionerSteps) => {
  const [asked] = steps.claims.list();
  try {
    await steps.provision(asked!, signal);
  } catch (error) {
    return steps.failed(asked!, error, signal);
  }
  return 'provisioned';
};

const made = (name: string) =>
  [
    [`POST ${name}/createVolume`, { handle: 'uid-c', bytes: 2 ** 30, source: undefined }],
    ['POST persistentvolumes', { spec: { persistentVolumeReclaimPolicy: 'Delete', claimRef: { uid: 'uid-c' } } }],
    [`POST ${name}/confirmVolume`, { handle: 'uid-c' }],
  ] as const;
const failed = (why: string) => [
  `Warning ProvisioningFailed failed to provision volume with StorageClass "fast": ${why}`,
];
const RESCHEDULED = ['PATCH persistentvolumeclaims/c', { metadata: { annotations: {} } }] as const;
const LATER = { requeueAfterMs: 5000 };
const SOON = { requeueAfterMs: 1000 };
testTable({ types: Object.values(core), make, act }, [
  {
    name: 'a volume is made in the pool, then named in the API, then confirmed',
    objects: [claim(), storageClass(), poolNode('n1')],
    outcome: 'provisioned',
    writes: made('n1'),
  },
  {
    name: 'of two pools that one is taken which has more room',
    objects: [claim(), storageClass(), poolNode('n1'), poolNode('n2')],
    outcome: 'provisioned',
    writes: [['POST n1/inspect'], ['POST n2/inspect'], ...made('n2')],
  },
  {
    name: 'the node that the scheduler chose decides',
    objects: [claim({ [SELECTED_NODE]: 'n1' }), storageClass(), poolNode('n1'), poolNode('n2')],
    outcome: 'provisioned',
    writes: made('n1'),
  },
  {
    name: 'a volume that is there already is confirmed all the same',
    objects: [claim(), storageClass(), poolNode('n1')],
    refuse: { 'POST persistentvolumes': exists },
    outcome: 'provisioned',
    writes: made('n1'),
  },
  {
    name: 'a class that is gone does not say that content may be deleted',
    objects: [claim(), poolNode('n1')],
    outcome: 'provisioned',
    writes: [
      ['POST n1/createVolume'],
      ['POST persistentvolumes', { spec: { persistentVolumeReclaimPolicy: 'Retain' } }],
      ['POST n1/confirmVolume'],
    ],
  },
  {
    name: 'where a pool has no room the scheduler chooses again',
    objects: [claim({ [SELECTED_NODE]: 'n1' }), storageClass(), poolNode('n1')],
    refuse: { 'POST n1/createVolume': full },
    outcome: LATER,
    writes: [['POST n1/createVolume'], RESCHEDULED],
    events: failed('no room'),
  },
  {
    name: 'what a pool refuses for another reason another node would refuse as well',
    objects: [claim({ [SELECTED_NODE]: 'n1' }), storageClass(), poolNode('n1')],
    refuse: { 'POST n1/createVolume': new ApiError({ code: 400, reason: 'Invalid', message: 'no size' }) },
    outcome: LATER,
    writes: [['POST n1/createVolume']],
    events: failed('no size'),
  },
  {
    name: 'the scheduler chooses again where the node serves no pool',
    objects: [claim({ [SELECTED_NODE]: 'n3' }), storageClass(), poolNode('n1'), poolNode('n3', {})],
    outcome: LATER,
    writes: [RESCHEDULED],
    events: failed('node n3 serves no pool of volumes'),
  },
  {
    name: 'a claim waits for a node that serves a pool',
    objects: [claim(), storageClass()],
    outcome: LATER,
    events: failed('no ready node serves a pool of volumes'),
  },
  {
    name: 'a format that there is not is refused before a pool is asked',
    objects: [claim(), storageClass({ format: 'vmdk' }), poolNode('n1')],
    outcome: SOON,
    events: failed('parameter "format" of the StorageClass must be raw or qcow2'),
  },
  {
    name: 'so is a selector',
    objects: [claim({}, { selector: { matchLabels: { a: 'b' } } }), storageClass(), poolNode('n1')],
    outcome: SOON,
    events: failed('claim Selector is not supported'),
  },
]);
