import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Pod } from '../../api/kinds/builtin/types.ts';
import type { VirtualMachineInstance } from '../../api/kinds/kubevirt/kinds.ts';
import type { MachinePlan } from '../../domain/machine/machine-plan.ts';
import type { GuestState } from './guest.ts';
import { podStatusDiffers, podStatusOf, sameJson } from './pod-status.ts';
import { type Ending, resultOf } from './vm-result.ts';
import { finalStatus, type RunningView, runningStatus } from './vmi-status.ts';

const NOW = Date.UTC(2030, 0, 1);
const pod = (status: object = {}, gates: string[] = []): Pod =>
  ({
    metadata: { name: 'p', uid: 'u' },
    spec: {
      containers: [
        { name: 'compute', image: 'launcher' },
        { name: 'volumeroot', image: 'disk' },
      ],
      initContainers: [{ name: 'volumeroot-init', image: 'disk' }],
      readinessGates: gates.map((conditionType) => ({ conditionType })),
    },
    status,
  }) as unknown as Pod;
const options = { hostIP: '127.0.0.1', now: NOW };

test('resultOf(): the table of endings', () => {
  const cases: [Ending, string, string][] = [
    [{ shutdown: 'guest-shutdown' }, 'Succeeded', 'Completed'],
    [{ shutdown: 'guest-reset' }, 'Succeeded', 'Completed'],
    [{ shutdown: 'guest-shutdown', exit: { code: 0, signal: null } }, 'Succeeded', 'Completed'],
    [{ forced: 'immediate', exit: { code: 0, signal: null } }, 'Succeeded', 'Completed'],
    [{ forced: 'grace', exit: { code: 0, signal: null } }, 'Failed', 'ShutdownTimedOut'],
    [{ panicked: true }, 'Failed', 'GuestPanicked'],
    [{ exit: { code: null, signal: 'SIGKILL' } }, 'Failed', 'Crashed'],
    [{ exit: { code: 1, signal: null } }, 'Failed', 'Crashed'],
    [{ shutdown: 'host-signal', exit: { code: 0, signal: null } }, 'Failed', 'EndedByHost'],
    [{ exit: { code: 0, signal: null } }, 'Failed', 'EndedByHost'],
    [{}, 'Failed', 'Crashed'],
  ];
  for (const [ending, phase, reason] of cases) {
    const result = resultOf(ending);
    assert.deepEqual(
      [result.phase, result.reason, result.exitCode === 0],
      [phase, reason, phase === 'Succeeded'],
      JSON.stringify(ending),
    );
  }
});

test('podStatusOf() follows the life of a launcher', () => {
  const waiting = podStatusOf(
    pod(),
    { state: 'creating', reason: 'ErrImagePull', message: 'no', container: 'volumeroot' },
    options,
  );
  assert.equal(waiting.phase, 'Pending');
  assert.deepEqual(
    waiting.containerStatuses?.map((c) => c.state?.waiting?.reason),
    [undefined, 'ErrImagePull'],
  );

  const view = {
    state: 'running',
    startedAt: NOW,
    address: '127.64.0.1',
    imageIds: { volumeroot: 'disk@sha256:1' },
  } as const;
  const running = podStatusOf(pod({ conditions: [{ type: 'PodScheduled', status: 'True' }] }), view, options);
  assert.deepEqual([running.phase, running.podIP, running.hostIP], ['Running', '127.64.0.1', '127.0.0.1']);
  assert.deepEqual(
    running.containerStatuses?.map((c) => [c.ready, c.imageID]),
    [
      [true, 'launcher'],
      [true, 'disk@sha256:1'],
    ],
  );
  assert.equal(running.initContainerStatuses?.[0]?.state?.terminated?.reason, 'Completed');
  assert.ok(running.conditions?.some((c) => c.type === 'PodScheduled'));
  assert.equal(podStatusDiffers(pod(running), podStatusOf(pod(running), view, { ...options, now: NOW + 9999 })), false);

  const gated = podStatusOf(pod({}, ['kubevirt.io/virtual-machine-unpaused']), view, options);
  assert.equal(gated.conditions?.find((c) => c.type === 'Ready')?.reason, 'ReadinessGatesNotReady');
  const open = pod({ conditions: [{ type: 'g', status: 'True' }] }, ['g']);
  assert.equal(podStatusOf(open, view, options).conditions?.find((c) => c.type === 'Ready')?.status, 'True');

  const result = resultOf({ exit: { code: null, signal: 'SIGKILL' } });
  const ended = podStatusOf(
    pod(running),
    { state: 'ended', result, startedAt: NOW, finishedAt: NOW, imageIds: {} },
    options,
  );
  assert.deepEqual(
    [ended.phase, ended.reason, ended.containerStatuses?.[0]?.state?.terminated?.exitCode],
    ['Failed', 'Crashed', 137],
  );
});

const GUEST: GuestState = { connected: true, foreign: false, runState: 'running', agentConnected: true };
const view = (guest: Partial<GuestState> = {}, more: Partial<RunningView> = {}): RunningView => ({
  plan: {
    machine: { type: 'pc-q35-7.2' },
    cpu: { sockets: 1, cores: 2, threads: 1 },
    interfaces: [{ name: 'default', mac: '02:00:00:00:00:01', linkUp: true }],
    disks: [{ name: 'root', target: 'vda', hasVolume: true }],
    startPaused: false,
  } as unknown as MachinePlan,
  guest: { ...GUEST, ...guest },
  address: '127.64.0.1',
  portProblems: [],
  ...more,
});
const vmi = (status: object): VirtualMachineInstance =>
  ({
    metadata: {},
    spec: { domain: { memory: { guest: '128Mi' } }, volumes: [] },
    status,
  }) as unknown as VirtualMachineInstance;
const conditions = (change: object): Map<string, string> =>
  new Map(
    ((change as { conditions?: { type: string; status: string; reason?: string }[] }).conditions ?? []).map((c) => [
      c.type,
      `${c.status}/${c.reason ?? ''}`,
    ]),
  );

test('runningStatus(): one write from Scheduled to Running, then nothing until something changes', () => {
  const change = runningStatus(vmi({ phase: 'Scheduled' }), view(), NOW);
  assert.equal(change.phase, 'Running');
  assert.deepEqual(change.interfaces, [
    {
      name: 'default',
      mac: '02:00:00:00:00:01',
      ipAddress: '127.64.0.1',
      ipAddresses: ['127.64.0.1'],
      podInterfaceName: 'eth0',
      infoSource: 'domain',
      queueCount: 1,
      linkState: 'up',
    },
  ]);
  assert.deepEqual(change.volumeStatus, [{ name: 'root', target: 'vda' }]);
  assert.equal(conditions(change).get('AgentConnected'), 'True/');
  const after = vmi({ phase: 'Scheduled', ...change });
  assert.deepEqual(runningStatus(after, view(), NOW + 5000), {});
  assert.deepEqual(runningStatus(vmi({ phase: 'Scheduling' }), view(), NOW), {});
  assert.deepEqual(runningStatus(vmi({ phase: 'Scheduled' }), view({ runState: 'unknown' }), NOW), {});
  assert.deepEqual(runningStatus(vmi({ phase: 'Failed' }), view(), NOW), {});
});

test('runningStatus(): conditions of a paused, full, silent and portless guest; those of others stay', () => {
  const foreign = { type: 'Ready', status: 'True' };
  const base = { phase: 'Running', conditions: [foreign] };
  const of = (guest: Partial<GuestState>, more: Partial<RunningView> = {}) =>
    conditions(runningStatus(vmi(base), view(guest, more), NOW));
  assert.equal(of({ runState: 'paused' }).get('Paused'), 'True/PausedByUser');
  const full = of({ runState: 'io-error', ioError: 'nospace' });
  assert.deepEqual(
    [full.get('Paused'), full.get('DiskFull'), full.get('Ready')],
    ['True/PausedIOError', 'True/NoSpaceOnNode', 'True/'],
  );
  assert.equal(of({ runState: 'io-error', ioError: 'failed' }).has('DiskFull'), false);
  assert.equal(of({ connected: false, trouble: 'silent' }).get('AgentConnected'), 'Unknown/MonitorUnreachable');
  assert.equal(of({}, { portProblems: ['TCP port 80 is taken'] }).get('PortsForwarded'), 'False/PortNotAvailable');
  const paused = vmi({ phase: 'Running', conditions: [{ type: 'Paused', status: 'True' }] });
  assert.equal(conditions(runningStatus(paused, view(), NOW)).has('Paused'), false);
});

test('finalStatus() only where the agent owns the phase', () => {
  assert.equal(finalStatus(vmi({ phase: 'Running' }), resultOf({}), NOW).phase, 'Failed');
  assert.deepEqual(finalStatus(vmi({ phase: 'Scheduling' }), resultOf({}), NOW), {});
  assert.deepEqual(finalStatus(vmi({ phase: 'Succeeded' }), resultOf({}), NOW), {});
});

test('sameJson() compares values, not order of keys', () => {
  assert.equal(sameJson({ a: 1, b: [1, { c: null }] }, { b: [1, { c: null }], a: 1 }), true);
  for (const [a, b] of [
    [{}, []],
    [{ a: 1 }, {}],
    [null, {}],
    [
      [1, 2],
      [2, 1],
    ],
    [{ constructor: 1 }, {}],
  ])
    assert.equal(sameJson(a, b), false);
});
