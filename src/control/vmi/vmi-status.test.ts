import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Pod } from '../../api/kinds/builtin/types.ts';
import type { VirtualMachineInstance } from '../../api/kinds/kubevirt/kubevirt.ts';
import { vmiIdLabel } from './launcher-labels.ts';
import { launcherPod } from './launcher-pod.ts';
import { launcherResources } from './launcher-resources.ts';
import { applyVmiStatus, unpausedCondition, type VmiStatusInput } from './vmi-status.ts';

const instance = (over: { phase?: string; deleting?: boolean; spec?: object } = {}): VirtualMachineInstance =>
  ({
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: {
      name: 'a',
      namespace: 'ns',
      uid: 'u',
      labels: { app: 'x' },
      annotations: { 'kubectl.kubernetes.io/last-applied-configuration': '{}', keep: 'me' },
      ...(over.deleting && { deletionTimestamp: 't' }),
    },
    spec: { domain: { memory: { guest: '128Mi' }, cpu: { sockets: 2, cores: 1, threads: 1 } }, ...over.spec },
    ...(over.phase !== undefined && { status: { phase: over.phase } }),
  }) as unknown as VirtualMachineInstance;

const pod = (
  phase: string,
  over: { ready?: boolean; waiting?: string; deleting?: boolean; unschedulable?: boolean } = {},
): Pod =>
  ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p', namespace: 'ns', uid: 'pu', ...(over.deleting && { deletionTimestamp: 't' }) },
    spec: { nodeName: over.unschedulable ? undefined : 'n1', containers: [{ name: 'compute', image: 'launcher:1' }] },
    status: {
      phase,
      qosClass: 'Burstable',
      conditions: [
        over.unschedulable
          ? { type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: '0/1 nodes' }
          : { type: 'PodScheduled', status: 'True' },
        { type: 'Ready', status: 'True' },
      ],
      containerStatuses: [
        {
          name: 'compute',
          ready: over.ready ?? false,
          ...(over.waiting && { state: { waiting: { reason: over.waiting, message: 'why' } } }),
        },
      ],
    },
  }) as unknown as Pod;

const PHASES: [name: string, vmi: VirtualMachineInstance, over: Partial<VmiStatusInput>, phase: string][] = [
  ['nothing yet', instance(), {}, 'Pending'],
  ['pod made', instance(), { podExpected: true, pod: pod('Pending') }, 'Scheduling'],
  ['pod pending', instance({ phase: 'Scheduling' }), { pod: pod('Pending') }, 'Scheduling'],
  ['compute not ready', instance({ phase: 'Scheduling' }), { pod: pod('Running') }, 'Scheduling'],
  ['compute ready', instance({ phase: 'Scheduling' }), { pod: pod('Running', { ready: true }) }, 'Scheduled'],
  ['pod failed early', instance({ phase: 'Scheduling' }), { pod: pod('Failed') }, 'Failed'],
  ['pod vanished early', instance({ phase: 'Scheduling' }), {}, 'Failed'],
  ['the agent owns the phase', instance({ phase: 'Scheduled' }), { pod: pod('Running', { ready: true }) }, 'Scheduled'],
  ['the agent owns the phase, also at the end', instance({ phase: 'Running' }), { pod: pod('Succeeded') }, 'Running'],
  ['pod vanished under a guest', instance({ phase: 'Running' }), {}, 'Failed'],
  ['final stays', instance({ phase: 'Succeeded' }), {}, 'Succeeded'],
  ['deleted before a pod', instance({ phase: 'Pending', deleting: true }), {}, 'Failed'],
];
for (const [name, vmi, over, phase] of PHASES) {
  test(`applyVmiStatus() phase: ${name}`, () => {
    applyVmiStatus({
      vmi,
      pod: undefined,
      podExpected: false,
      problem: undefined,
      missingClaim: undefined,
      now: 0,
      ...over,
    });
    assert.equal(vmi.status?.phase, phase);
  });
}

const conditionOf = (vmi: VirtualMachineInstance, type: string): string | undefined => {
  const found = vmi.status?.conditions?.find((c) => c.type === type);
  return found && `${found.status}/${found.reason ?? ''}`;
};
const CONDITIONS: [
  name: string,
  vmi: VirtualMachineInstance,
  over: Partial<VmiStatusInput>,
  expected: Record<string, string | undefined>,
][] = [
  ['no pod', instance(), {}, { Ready: 'False/PodNotExists' }],
  [
    'guest not running',
    instance({ phase: 'Scheduled' }),
    { pod: pod('Running', { ready: true }) },
    { Ready: 'False/GuestNotRunning', Synchronized: undefined },
  ],
  ['running', instance({ phase: 'Running' }), { pod: pod('Running', { ready: true }) }, { Ready: 'True/' }],
  [
    'pod terminating',
    instance({ phase: 'Running' }),
    { pod: pod('Running', { ready: true, deleting: true }) },
    { Ready: 'False/PodTerminating' },
  ],
  [
    'image cannot be pulled',
    instance({ phase: 'Scheduling' }),
    { pod: pod('Pending', { waiting: 'ErrImagePull' }) },
    { Synchronized: 'False/ErrImagePull' },
  ],
  [
    'unschedulable',
    instance({ phase: 'Scheduling' }),
    { pod: pod('Pending', { unschedulable: true }) },
    { PodScheduled: 'False/Unschedulable' },
  ],
  [
    'claim missing',
    instance(),
    { missingClaim: 'data' },
    { PodScheduled: 'False/Unschedulable', Synchronized: 'False/FailedPvcNotFound' },
  ],
];
for (const [name, vmi, over, expected] of CONDITIONS) {
  test(`applyVmiStatus() conditions: ${name}`, () => {
    applyVmiStatus({
      vmi,
      pod: undefined,
      podExpected: false,
      problem: undefined,
      missingClaim: undefined,
      now: 0,
      ...over,
    });
    for (const [type, value] of Object.entries(expected)) assert.equal(conditionOf(vmi, type), value, type);
  });
}

const NO_MORE = { podExpected: false, problem: undefined, missingClaim: undefined, now: 0 } as const;

test('applyVmiStatus() takes image trouble back when the agent gets the instance', () => {
  const vmi = instance({ phase: 'Scheduling' });
  applyVmiStatus({ ...NO_MORE, vmi, pod: pod('Pending', { waiting: 'ImagePullBackOff' }) });
  assert.equal(conditionOf(vmi, 'Synchronized'), 'False/ImagePullBackOff');
  applyVmiStatus({ ...NO_MORE, vmi, pod: pod('Running', { ready: true }) });
  assert.equal(vmi.status?.phase, 'Scheduled');
  assert.equal(conditionOf(vmi, 'Synchronized'), undefined);
});

test('applyVmiStatus() writes nothing more when a Pod under preparation is bound', () => {
  const vmi = instance();
  applyVmiStatus({ ...NO_MORE, vmi, pod: pod('Pending'), podExpected: true });
  const made = structuredClone(vmi);
  const bound = { ...pod('Pending'), spec: { ...pod('Pending').spec, nodeName: 'n2' } };
  applyVmiStatus({ ...NO_MORE, vmi, pod: bound });
  assert.deepEqual(vmi, made);
  applyVmiStatus({ ...NO_MORE, vmi, pod: pod('Running', { ready: true }) });
  assert.deepEqual(vmi.status?.activePods, { pu: 'n1' });
});

test('applyVmiStatus() tells why a Pod failed before the agent had the instance', () => {
  const vmi = instance({ phase: 'Scheduling' });
  const failed = pod('Failed');
  applyVmiStatus({ ...NO_MORE, vmi, pod: { ...failed, status: { ...failed.status, reason: 'StartFailed' } } });
  assert.deepEqual([vmi.status?.phase, vmi.status?.reason], ['Failed', 'StartFailed']);
});

test('unpausedCondition() follows the pause, and only where the Pod has the gate', () => {
  const gate = 'kubevirt.io/virtual-machine-unpaused';
  const running = instance({ phase: 'Running' });
  const paused = instance({ phase: 'Running' });
  paused.status = { phase: 'Running', conditions: [{ type: 'Paused', status: 'True' }] } as never;
  const gated = (status?: string): Pod => {
    const made = pod('Running');
    if (status) made.status!.conditions!.push({ type: gate, status } as never);
    return { ...made, spec: { ...made.spec, readinessGates: [{ conditionType: gate }] } };
  };
  const cases: [VirtualMachineInstance, Pod, string | undefined][] = [
    [running, pod('Running'), undefined],
    [running, gated(), 'True/NotPaused'],
    [running, gated('True'), undefined],
    [running, gated('False'), 'True/NotPaused'],
    [paused, gated(), 'False/Paused'],
    [paused, gated('True'), 'False/Paused'],
    [paused, gated('False'), undefined],
  ];
  for (const [vmi, own, expected] of cases) {
    const made = unpausedCondition(vmi, own, 0);
    assert.equal(made && `${made.status}/${made.reason}`, expected);
  }
});

test('applyVmiStatus() twice changes nothing', () => {
  const vmi = instance({ phase: 'Scheduling' });
  const input = {
    vmi,
    pod: pod('Running', { ready: true }),
    podExpected: false,
    problem: undefined,
    missingClaim: undefined,
  };
  assert.equal(applyVmiStatus({ ...input, now: 0 }).nodeLabel, 'n1');
  const once = structuredClone(vmi);
  applyVmiStatus({ ...input, now: 99_000 });
  assert.deepEqual(vmi, once);
});

test('launcherPod() carries upstream labels, owner and grace padding', () => {
  const made = launcherPod(
    instance({
      spec: {
        terminationGracePeriodSeconds: 5,
        volumes: [{ name: 'root', containerDisk: { image: 'i' } }],
        architecture: 'amd64',
      },
    }),
    {
      idLabel: 'a',
      cpuAllocationRatio: 10,
      useEmulation: true,
      launcherImage: 'l',
    },
  );
  assert.deepEqual(made.metadata.labels, {
    app: 'x',
    'kubevirt.io': 'virt-launcher',
    'kubevirt.io/created-by': 'u',
    'vmi.kubevirt.io/id': 'a',
    'vm.kubevirt.io/name': 'a',
  });
  assert.equal(made.metadata.annotations?.['kubectl.kubernetes.io/last-applied-configuration'], undefined);
  assert.equal(made.metadata.annotations?.['keep'], 'me');
  assert.equal(made.metadata.generateName, 'virt-launcher-a-');
  assert.equal(made.metadata.ownerReferences?.[0]?.kind, 'VirtualMachineInstance');
  assert.equal(made.spec.terminationGracePeriodSeconds, 35);
  assert.deepEqual(made.spec.readinessGates, [{ conditionType: 'kubevirt.io/virtual-machine-unpaused' }]);
  assert.deepEqual(
    made.spec.containers.map((c) => c.name),
    ['compute', 'volumeroot'],
  );
  assert.deepEqual(made.spec.nodeSelector, { 'kubevirt.io/schedulable': 'true', 'kubernetes.io/arch': 'amd64' });
});

test('launcherResources() shares cores, adds overhead, asks for kvm only where it is used', () => {
  const spec = instance().spec;
  const emulated = launcherResources(spec, { cpuAllocationRatio: 10, useEmulation: true });
  assert.equal(emulated.requests['cpu'], '200m');
  assert.equal(emulated.requests['devices.kubevirt.io/kvm'], undefined);
  assert.equal(
    launcherResources(spec, { cpuAllocationRatio: 10, useEmulation: false }).limits['devices.kubevirt.io/kvm'],
    '1',
  );
  const overcommitted = {
    ...spec,
    domain: { ...spec.domain, resources: { overcommitGuestOverhead: true } },
  } as typeof spec;
  assert.equal(
    launcherResources(overcommitted, { cpuAllocationRatio: 10, useEmulation: true }).requests['memory'],
    '128Mi',
  );
});

test('vmiIdLabel() keeps short names and shortens long ones by a stable digest', async () => {
  assert.equal(await vmiIdLabel('a'.repeat(63)), 'a'.repeat(63));
  const long = await vmiIdLabel('a'.repeat(64));
  assert.match(long, /^a{54}-[0-9a-f]{8}$/);
  assert.notEqual(long, await vmiIdLabel('a'.repeat(65)));
});
