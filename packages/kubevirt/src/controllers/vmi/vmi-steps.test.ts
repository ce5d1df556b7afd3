import { cloneJson } from '../../../../apimachinery/src/meta/deep-clone.ts';
import type { ControllerEnvironment } from '../../../../client/src/controller/environment.ts';
import { NOW } from '../../../../client/src/run-step.fixture.ts';
import type { VirtualMachineInstance } from '../../kinds/kubevirt.ts';
import {
  CREATED_BY_LABEL,
  FOREGROUND_FINALIZER,
  NODE_NAME_LABEL,
  UNPAUSED_GATE,
} from '../../rules/launcher/launcher-labels.ts';
import { isLauncherOf } from '../../rules/launcher/launcher-owner.ts';
import { CONFLICT, instance, KEY, launcher, REFUSED, settings, testSteps } from '../step.fixture.ts';
import { type Pass, VmiSteps } from './vmi-steps.ts';

const OWN = launcher('uid-vmi');
const going = {
  deletionTimestamp: NOW,
  finalizers: [FOREGROUND_FINALIZER, 'kubevirt.io/virtualMachineControllerFinalize'],
};
const disk = { volumes: [{ name: 'd', persistentVolumeClaim: { claimName: 'disk' } }] };
const missing: VirtualMachineInstance['status'] = {
  conditions: [{ type: 'Synchronized', status: 'False', reason: 'FailedPvcNotFound' }],
};

type Act = 'ensurePod' | 'clearUp' | 'syncUnpaused' | 'syncPodMetadata' | 'syncEvictionNote' | 'unseenTarget';
const run = (step: Act) => async (steps: VmiSteps) => {
  const cached = steps.vmis.get(KEY)!;
  if (step === 'unseenTarget') return (await steps.unseenTarget(cached))?.metadata.name ?? 'none';
  const pods = steps.pods.list().filter((one) => isLauncherOf(one, cached));
  const pass: Pass = {
    key: KEY,
    vmi: cloneJson(cached) as VirtualMachineInstance,
    pods,
    current: pods[0],
    podExpected: false,
    problem: undefined,
    missingClaim: undefined,
  };
  try {
    await steps[step](pass);
  } catch (error) {
    return { ...pass, error: String(error) };
  }
  return pass;
};

const CREATED = 'Normal SuccessfulCreate Created virtual machine pod virt-launcher-vm-x';
const PATCH = 'PATCH pods/launcher';
const setting = {
  make: (environment: ControllerEnvironment) => new VmiSteps({ ...environment, settings }),
  own: ({ pods, attachments }: VmiSteps) => [pods, attachments],
};
testSteps(setting, [
  {
    name: 'an instance that never had a Pod gets one',
    act: run('ensurePod'),
    objects: [instance({ phase: 'Pending' })],
    outcome: { podExpected: true, current: { kind: 'Pod' } },
    writes: [['POST pods', { metadata: { labels: { [CREATED_BY_LABEL]: 'uid-vmi' } } }]],
    events: [CREATED],
  },
  {
    name: 'an instance whose Pod vanished gets no second one',
    act: run('ensurePod'),
    objects: [instance({ phase: 'Scheduled' })],
    outcome: { podExpected: false },
  },
  {
    name: 'an instance waits while a Pod of the one before it lives',
    act: run('ensurePod'),
    objects: [instance({}), launcher('uid-before')],
    outcome: { podExpected: false, problem: undefined },
  },
  {
    name: 'a claim that is missing is reported',
    act: run('ensurePod'),
    objects: [instance({}, {}, disk)],
    outcome: { missingClaim: 'disk' },
    events: ['Warning FailedPvcNotFound PVC ns/disk does not exist, waiting for it to appear'],
  },
  {
    name: 'a claim that is missing is reported once',
    act: run('ensurePod'),
    objects: [instance(missing, {}, disk)],
    outcome: { missingClaim: 'disk' },
  },
  {
    name: 'a Pod that is refused is a problem of the instance, and is tried again',
    act: run('ensurePod'),
    objects: [instance({})],
    refuse: { 'POST pods': REFUSED },
    outcome: {
      error: 'ApiError: not now',
      problem: { reason: 'FailedCreate', message: 'failed to create virtual machine pod: not now' },
    },
    writes: [['POST pods']],
    events: ['Warning FailedCreate Error creating pod: not now'],
  },
  {
    name: 'an instance that is deleted deletes this very Pod and stays itself',
    act: run('clearUp'),
    objects: [instance({ phase: 'Succeeded' }, going), OWN],
    outcome: { vmi: { metadata: { finalizers: going.finalizers } } },
    writes: [['DELETE pods/launcher', { preconditions: { uid: 'uid-launcher' } }]],
    events: ['Normal SuccessfulDelete Deleted virtual machine pod launcher'],
  },
  {
    name: 'an instance that ended and has no Pod left may go',
    act: run('clearUp'),
    objects: [
      instance({ phase: 'Failed' }, { ...going, ownerReferences: [], finalizers: [...going.finalizers, 'mine'] }),
    ],
    outcome: { vmi: { metadata: { finalizers: ['mine'] } } },
  },
  {
    name: 'the finalizer of the VM controller is left to the machine above',
    act: run('clearUp'),
    objects: [instance({ phase: 'Failed' }, { ...going })],
    outcome: { vmi: { metadata: { finalizers: ['kubevirt.io/virtualMachineControllerFinalize'] } } },
  },
  {
    name: 'a paused guest takes no traffic: its Pod says so',
    act: run('syncUnpaused'),
    objects: [instance({ phase: 'Running', conditions: [{ type: 'Paused', status: 'True' }] }), OWN],
    writes: [
      [`${PATCH}/status`, { status: { conditions: [{ type: UNPAUSED_GATE, status: 'False', reason: 'Paused' }] } }],
    ],
  },
  {
    name: 'a Pod that became another one meanwhile is no failure',
    act: run('syncUnpaused'),
    objects: [instance({ phase: 'Running' }), OWN],
    refuse: { [`${PATCH}/status`]: CONFLICT },
    outcome: { error: undefined },
    writes: [[`${PATCH}/status`]],
  },
  {
    name: 'the Pod on the node of the instance takes its label',
    act: run('syncPodMetadata'),
    objects: [instance({}, { labels: { [NODE_NAME_LABEL]: 'n1' } }), OWN],
    writes: [[PATCH, { metadata: { uid: 'uid-launcher', labels: { [NODE_NAME_LABEL]: 'n1' } } }]],
  },
  {
    name: 'the Pod takes the networks that its instance has been given',
    act: run('syncPodMetadata'),
    objects: [instance({}, { annotations: { 'k8s.v1.cni.cncf.io/networks': '[]' } }), OWN],
    writes: [[PATCH, { metadata: { annotations: { 'k8s.v1.cni.cncf.io/networks': '[]' } } }]],
  },
  {
    name: 'the descheduler sees on the Pod that the eviction is under way',
    act: run('syncEvictionNote'),
    objects: [instance({ evacuationNodeName: 'n1' }), OWN],
    writes: [
      [PATCH, { metadata: { annotations: { 'descheduler.alpha.kubernetes.io/eviction-in-progress': 'true' } } }],
    ],
  },
  {
    name: 'the Pod of a guest that has just moved is asked of the server',
    act: run('unseenTarget'),
    objects: [instance({ nodeName: 'n1', migrationState: { targetNode: 'n1', targetPod: 'launcher' } }), OWN],
    outcome: 'launcher',
  },
  {
    name: 'the target of a guest that has not moved is not its Pod',
    act: run('unseenTarget'),
    objects: [instance({ nodeName: 'n0', migrationState: { targetNode: 'n1', targetPod: 'launcher' } }), OWN],
    outcome: 'none',
  },
]);
