import {
  PERSISTENT_VOLUME_CLAIMS,
  PERSISTENT_VOLUMES,
  PODS,
  SERVICES,
} from '../../../../apimachinery/src/types/resource-types.ts';
import type { ControllerEnvironment } from '../../../../client/src/controller/environment.ts';
import { NOW, stored } from '../../../../client/src/run-step.fixture.ts';
import { VIRTUAL_MACHINE_EXPORTS, type VirtualMachineExport } from '../../kinds/kubevirt.ts';
import { exporterPod } from '../../rules/export/exporter-pod.ts';
import { testSteps } from '../step.fixture.ts';
import { ExportSteps } from './export-steps.ts';
import { createExportTargets } from './export-targets.ts';

const object = (spec: Partial<VirtualMachineExport['spec']> = {}, status?: VirtualMachineExport['status']) =>
  stored(VIRTUAL_MACHINE_EXPORTS, 'e', {
    spec: { source: { apiGroup: '', kind: 'PersistentVolumeClaim', name: 'c' }, ...spec },
    ...(status && { status }),
  });
const SERVICE = stored(SERVICES, 'virt-export-e', { spec: {} });
const CLAIM = stored(PERSISTENT_VOLUME_CLAIMS, 'c', { spec: { volumeName: 'pv' }, status: { phase: 'Bound' } });
const volume = (uid: string) =>
  stored(PERSISTENT_VOLUMES, 'pv', {
    spec: {
      claimRef: { namespace: 'ns', name: 'c', uid },
      csi: { driver: 'local.coracle.dev', volumeHandle: 'h', volumeAttributes: { pool: 'p' } },
    },
  });
const pod = (status: object) => {
  const { metadata, spec } = exporterPod(object());
  return stored(PODS, 'virt-export-e', { metadata: { ownerReferences: metadata.ownerReferences }, spec, status });
};
const POD = pod({ phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] });
const SAVE = 'PATCH virtualmachineexports/e/status';

// S-1386
testSteps(
  {
    make: (environment: ControllerEnvironment) =>
      new ExportSteps({
        ...environment,
        targets: createExportTargets(),
        server: { url: 'https://h', ca: 'PEM' },
      }),
    act: (steps) => steps.pass(steps.stores.exports.get({ namespace: 'ns', name: 'e' })!),
  },
  [
    {
      name: 'an export gets its service, and says that it waits',
      objects: [object()],
      outcome: { requeueAfterMs: 7_200_000 },
      writes: [
        ['POST services', { metadata: { name: 'virt-export-e', labels: { 'kubevirt.io': 'virt-exporter' } } }],
        [SAVE, { status: { phase: 'Pending', serviceName: 'virt-export-e' } }],
      ],
      events: ['Normal ServiceCreated Created service ns/virt-export-e'],
    },
    {
      name: 'an export that is ready gets a token where it names none',
      objects: [object(), SERVICE, CLAIM, volume('uid-c'), POD],
      writes: [
        ['POST secrets', { metadata: { name: 'export-token-e' }, type: 'Opaque' }],
        [SAVE, { status: { phase: 'Ready', tokenSecretRef: 'export-token-e' } }],
      ],
      events: ['Normal SecretCreated Created default secret ns/export-token-e'],
    },
    {
      name: "a Secret that is named is its owner's to make",
      objects: [object({ tokenSecretRef: 's' }), SERVICE, CLAIM, volume('uid-c'), POD],
      writes: [[SAVE, { status: { phase: 'Ready', tokenSecretRef: 's' } }]],
    },
    {
      name: 'a volume that is bound to another claim is not given away',
      objects: [object(), SERVICE, CLAIM, volume('uid-other')],
      writes: [[SAVE, { status: { phase: 'Pending' } }]],
    },
    {
      name: 'an export whose claim goes is paused',
      objects: [object({}, { phase: 'Ready' }), SERVICE, POD],
      writes: [['DELETE pods/virt-export-e'], [SAVE, { status: { phase: 'Pending' } }]],
      events: ['Warning ExportPaused '],
    },
    {
      name: 'an export whose source is there gets the Pod of its Service, and waits for it',
      objects: [object({ tokenSecretRef: 's' }), SERVICE, CLAIM, volume('uid-c')],
      writes: [
        ['POST pods', { metadata: { name: 'virt-export-e', labels: { 'kubevirt.io.virt-export-service': 'e' } } }],
        [SAVE, { status: { phase: 'Pending', conditions: [{ type: 'Ready', reason: 'PodPending' }, {}] } }],
      ],
      events: ['Normal ExporterPodCreated Created exporter pod ns/virt-export-e'],
    },
    {
      name: 'a Pod that has ended makes room for another',
      objects: [object({ tokenSecretRef: 's' }), SERVICE, CLAIM, volume('uid-c'), pod({ phase: 'Succeeded' })],
      writes: [
        ['DELETE pods/virt-export-e'],
        [SAVE, { status: { phase: 'Terminated', conditions: [{ type: 'Ready', reason: 'PodCompleted' }, {}] } }],
      ],
      events: ['Warning ExporterPodFailedOrCompleted Exporter pod ns/virt-export-e is in phase Succeeded'],
    },
    {
      name: 'an export whose time is over is deleted',
      objects: [object({ ttlDuration: '0s' })],
      outcome: undefined,
      writes: [['DELETE virtualmachineexports/e']],
    },
    {
      name: 'nothing is made for an export that is being deleted',
      objects: [{ ...object(), metadata: { ...object().metadata, deletionTimestamp: NOW, finalizers: ['x'] } }],
      outcome: undefined,
    },
  ],
);
