import { PERSISTENT_VOLUME_CLAIMS, STORAGE_CLASSES } from '../../../../apimachinery/src/types/resource-types.ts';
import type { PersistentVolumeClaim } from '../../../../apimachinery/src/types/types.ts';
import type { ControllerEnvironment } from '../../../../client/src/controller/environment.ts';
import { stored } from '../../../../client/src/run-step.fixture.ts';
import { DATA_VOLUMES, type DataVolume } from '../../kinds/kinds.ts';
import { ALLOW_ADOPTION, PREPOPULATED } from '../../rules/data-volume/claim-of-data-volume.ts';
import { testSteps } from '../step.fixture.ts';
import { DataVolumeSteps } from './data-volume-steps.ts';

const dataVolume = (
  annotations: Record<string, string> = {},
  pvc: DataVolume['spec']['pvc'] = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
  status: DataVolume['status'] = {},
) => stored(DATA_VOLUMES, 'd', { metadata: { annotations }, spec: { pvc, source: { blank: {} } }, status });
const OWNER = { apiVersion: 'cdi.kubevirt.io/v1beta1', kind: 'DataVolume', name: 'd', uid: 'uid-d', controller: true };
const claim = (metadata: Partial<PersistentVolumeClaim['metadata']> = {}, phase: 'Pending' | 'Bound' = 'Pending') =>
  stored(PERSISTENT_VOLUME_CLAIMS, 'd', { metadata, spec: {}, status: { phase } });
const storageClass = (name: string, annotation: string) =>
  stored(STORAGE_CLASSES, name, { metadata: { annotations: { [annotation]: 'true' } }, provisioner: 'p' });
const DEFAULT = storageClass('fast', 'storageclass.kubernetes.io/is-default-class');
const FOR_MACHINES = storageClass('machines', 'storageclass.kubevirt.io/is-default-virt-class');

const noPool = () => Promise.reject(new Error('no pool is asked'));
const make = (environment: ControllerEnvironment) =>
  new DataVolumeSteps({ ...environment, pools: { ready: () => [], call: noPool, handler: noPool } });
const act = (steps: DataVolumeSteps) => steps.step(steps.dataVolumes.list()[0]!, new AbortController().signal);

const CREATE = 'POST persistentvolumeclaims';
const WRITE = 'PATCH persistentvolumeclaims/d';
const waits = (message: string, reason?: string) => ({ outcome: { type: 'waiting', message, reason } });
testSteps({ make, act }, [
  {
    name: 'a DataVolume gets its claim, of the default class of the cluster',
    objects: [dataVolume(), DEFAULT],
    outcome: waits('PVC d Pending'),
    writes: [[CREATE, { metadata: { name: 'd', ownerReferences: [OWNER] }, spec: { storageClassName: 'fast' } }]],
  },
  {
    name: 'the default class for machines comes before that of the cluster',
    objects: [dataVolume(), DEFAULT, FOR_MACHINES],
    writes: [[CREATE, { spec: { storageClassName: 'machines' } }]],
  },
  {
    name: 'without a default class the claim waits for one',
    objects: [dataVolume()],
    writes: [[CREATE, { spec: { storageClassName: undefined } }]],
  },
  {
    name: 'a DataVolume without a size makes nothing',
    objects: [dataVolume({}, { accessModes: ['ReadWriteOnce'] }), DEFAULT],
    outcome: waits('PVC size is missing', 'ErrClaimNotValid'),
  },
  {
    name: 'content that was there once is not fetched again',
    objects: [dataVolume({}, undefined, { phase: 'Succeeded' }), DEFAULT],
    outcome: waits('The claim is gone', 'NotFound'),
  },
  {
    name: 'a DataVolume of a claim that is filled already waits for it',
    objects: [dataVolume({ [PREPOPULATED]: 'd' }), DEFAULT],
    outcome: waits('Waits for the claim that is filled already'),
  },
  {
    name: 'a claim that somebody else made is in the way',
    objects: [dataVolume(), claim()],
    outcome: waits('Resource "d" already exists and is not managed by DataVolume', 'ErrResourceExists'),
  },
  {
    name: 'a claim that may be adopted becomes its own',
    objects: [dataVolume({ [ALLOW_ADOPTION]: 'true' }), claim()],
    outcome: waits('PVC d Pending'),
    writes: [[WRITE, { metadata: { ownerReferences: [OWNER] } }]],
  },
  {
    name: 'a claim of another controller is not adopted',
    objects: [dataVolume({ [ALLOW_ADOPTION]: 'true' }), claim({ ownerReferences: [{ ...OWNER, uid: 'another' }] })],
    outcome: waits('Resource "d" already exists and is not managed by DataVolume', 'ErrResourceExists'),
  },
  {
    name: 'a claim of its own that nobody fills here is left to its provisioner',
    objects: [dataVolume(), claim({ ownerReferences: [OWNER] })],
    outcome: { ...waits('PVC Pending'), claim: { kind: 'PersistentVolumeClaim' } },
  },
]);
