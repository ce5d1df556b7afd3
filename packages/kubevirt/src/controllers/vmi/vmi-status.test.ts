import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Pod } from '../../../../apimachinery/src/types/types.ts';
import type { VirtualMachineInstance } from '../../kinds/kubevirt.ts';
import { applyVmiStatus, clearMigrationMarks, unpausedCondition, type VmiStatusInput } from './vmi-status.ts';

const instance = (over: { phase?: string; deleting?: boolean } = {}): VirtualMachineInstance =>
  ({
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { name: 'a', namespace: 'ns', uid: 'u', ...(over.deleting && { deletionTimestamp: 't' }) },
    spec: { domain: { memory: { guest: '128Mi' }, cpu: { sockets: 2, cores: 1, threads: 1 } } },
    ...(over.phase !== undefined && { status: { phase: over.phase } }),
  }) as unknown as VirtualMachineInstance;

const pod = (
  phase: string,
  over: { ready?: boolean; running?: boolean; waiting?: string; deleting?: boolean; unschedulable?: boolean } = {},
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
          ...(over.running && { state: { running: {} } }),
          ...(over.waiting && { state: { waiting: { reason: over.waiting, message: 'why' } } }),
        },
      ],
    },
  }) as unknown as Pod;

const NO_MORE = {
  podExpected: false,
  problem: undefined,
  missingClaim: undefined,
  sizing: { cpuAllocationRatio: 10 },
  now: 0,
} as const;

const PHASES: [name: string, vmi: VirtualMachineInstance, over: Partial<VmiStatusInput>, phase: string][] = [
  ['nothing yet', instance(), {}, 'Pending'],
  ['pod made', instance(), { podExpected: true, pod: pod('Pending') }, 'Scheduling'],
  ['pod pending', instance({ phase: 'Scheduling' }), { pod: pod('Pending') }, 'Scheduling'],
  ['compute not ready', instance({ phase: 'Scheduling' }), { pod: pod('Running') }, 'Scheduling'],
  ['compute ready', instance({ phase: 'Scheduling' }), { pod: pod('Running', { ready: true }) }, 'Scheduled'],
  [
    'compute runs, and the probe of its guest has not succeeded yet',
    instance({ phase: 'Scheduling' }),
    { pod: pod('Running', { running: true }) },
    'Scheduled',
  ],
  ['pod failed early', instance({ phase: 'Scheduling' }), { pod: pod('Failed') }, 'Failed'],
  ['pod vanished early', instance({ phase: 'Scheduling' }), {}, 'Failed'],
  ['the agent owns the phase', instance({ phase: 'Scheduled' }), { pod: pod('Running', { ready: true }) }, 'Scheduled'],
  ['the agent owns the phase, also at the end', instance({ phase: 'Running' }), { pod: pod('Succeeded') }, 'Running'],
  ['pod vanished under a guest', instance({ phase: 'Running' }), {}, 'Failed'],
  ['final stays', instance({ phase: 'Succeeded' }), {}, 'Succeeded'],
  ['deleted before a pod', instance({ phase: 'Pending', deleting: true }), {}, 'Failed'],
];
for (const [name, vmi, over, phase] of PHASES) {
  // S-044: The instance's phases and conditions before the agent claims it.
  test(`applyVmiStatus() phase: ${name}`, () => {
    applyVmiStatus({
      vmi,
      pod: undefined,
      ...NO_MORE,
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
  // S-044
  test(`applyVmiStatus() conditions: ${name}`, () => {
    applyVmiStatus({
      vmi,
      pod: undefined,
      ...NO_MORE,
      ...over,
    });
    for (const [type, value] of Object.entries(expected)) assert.equal(conditionOf(vmi, type), value, type);
  });
}

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
  paused.status = { phase: 'Running', conditions: [{ type: 'Paused', status: 'True' }] };
  const gated = (status?: 'True' | 'False'): Pod => {
    const made = pod('Running');
    if (status) made.status!.conditions!.push({ type: gate, status });
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
  const input = { ...NO_MORE, vmi, pod: pod('Running', { ready: true }) };
  assert.equal(applyVmiStatus({ ...input, now: 0 }).nodeLabel, 'n1');
  const once = structuredClone(vmi);
  applyVmiStatus({ ...input, now: 99_000 });
  assert.deepEqual(vmi, once);
});

test('applyVmiStatus() counts the Pods of a migration among the active ones, and not what has ended', () => {
  const vmi = instance({ phase: 'Running' });
  const beside = (uid: string, phase: string, nodeName?: string): Pod => {
    const made = pod(phase);
    return { ...made, metadata: { ...made.metadata, uid }, spec: { ...made.spec, nodeName } } as Pod;
  };
  const own = pod('Running', { ready: true });
  const otherPods = [
    beside('target', 'Running', 'n2'),
    beside('source', 'Succeeded', 'n3'),
    beside('unbound', 'Pending'),
  ];
  applyVmiStatus({ ...NO_MORE, vmi, pod: own, otherPods });
  assert.deepEqual(vmi.status?.activePods, { pu: 'n1', target: 'n2' });
  applyVmiStatus({ ...NO_MORE, vmi, pod: own, otherPods: [] });
  assert.deepEqual(vmi.status?.activePods, { pu: 'n1' });
});

test('applyVmiStatus() shows an eviction, who it waits for, and that it is over', () => {
  const requested = (vmi: VirtualMachineInstance) => {
    applyVmiStatus({ ...NO_MORE, vmi, pod: pod('Running', { ready: true }) });
    return vmi.status?.conditions?.find(({ type }) => type === 'EvictionRequested')?.message;
  };
  const vmi = instance({ phase: 'Running' });
  assert.equal(requested(vmi), undefined);
  vmi.status!.evacuationNodeName = 'n1';
  assert.equal(requested(vmi), 'VMI is marked for eviction');
  vmi.spec.evictionStrategy = 'External';
  assert.match(requested(vmi) ?? '', /^VMI is marked for eviction: from node n1, .* outside controller/);
  // The note of who asked goes first: the next pass, without it, drops the condition.
  delete vmi.status!.evacuationNodeName;
  vmi.metadata.annotations = { 'kubevirt.io/eviction-source': 'descheduler' };
  assert.ok(requested(vmi));
  vmi.metadata.annotations = {};
  assert.equal(requested(vmi), undefined);
});

test('clearMigrationMarks() takes off who asked for an eviction once it is over, also one whose mark nobody has seen here', () => {
  const noted = (nodeName: string, more: object = {}): boolean => {
    const vmi = instance({ phase: 'Running' });
    vmi.metadata = { ...vmi.metadata, annotations: { 'kubevirt.io/eviction-source': 'descheduler' } };
    Object.assign(vmi.status!, { nodeName, ...more });
    clearMigrationMarks(vmi, 'n1');
    return vmi.metadata.annotations?.['kubevirt.io/eviction-source'] !== undefined;
  };
  const conditions = [{ type: 'EvictionRequested', status: 'True' }];
  assert.equal(noted('n1'), true, 'the note is written before the mark');
  assert.equal(noted('n1', { evacuationNodeName: 'n1', conditions }), true);
  assert.equal(noted('n1', { conditions }), false);
  assert.equal(noted('n2', { migrationState: { completed: true } }), false, 'it has moved');
});

test('applyVmiStatus() marks a change that waits, with what it waits for, and keeps one that failed', () => {
  const vmi = instance({ phase: 'Running' });
  vmi.spec.domain.cpu = { ...vmi.spec.domain.cpu, maxSockets: 4 };
  vmi.spec.domain.memory = { guest: '2Gi', maxGuest: '4Gi' };
  const topology = (sockets: number) => ({ sockets, cores: 1, threads: 1 });
  const memory = (guest: string) => ({ guestAtBoot: '1Gi', guestCurrent: guest, guestRequested: guest });
  const apply = (status: object, waiting?: string): (string | undefined)[] => {
    Object.assign(vmi.status!, status);
    applyVmiStatus({ ...NO_MORE, vmi, pod: pod('Running', { ready: true }), waiting });
    return ['HotVCPUChange', 'HotMemoryChange'].map((type) => conditionOf(vmi, type));
  };
  assert.deepEqual(apply({ currentCPUTopology: topology(1), memory: memory('1Gi') }, 'room'), ['True/', 'True/']);
  assert.equal(vmi.status?.conditions?.find(({ type }) => type === 'HotVCPUChange')?.message, 'room');
  assert.deepEqual(apply({ currentCPUTopology: topology(2) }), [undefined, 'True/']);
  const failed = { type: 'HotMemoryChange', status: 'False' as const, reason: 'Memory Hotplug Failed' };
  assert.deepEqual(apply({ conditions: [failed] }), [undefined, 'False/Memory Hotplug Failed']);
  assert.deepEqual(apply({ conditions: [], memory: memory('2Gi') }), [undefined, undefined]);
});
