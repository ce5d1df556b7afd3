import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Pod } from '../../../../apimachinery/src/types/types.ts';
import type { VirtualMachineInstance } from '../../../../kubevirt/src/kinds/kinds.ts';
import type { MachinePlan } from '../../../../kubevirt/src/rules/machine/machine-plan.ts';
import type { GuestState } from '../guest/guest.ts';
import { podAnnotationsOf, podStatusDiffers, podStatusOf } from './pod-status.ts';
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
      initContainers: [
        { name: 'volumeroot-init', image: 'disk' },
        { name: 'guest-console-log', image: 'launcher', restartPolicy: 'Always' },
      ],
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
    [{ shutdown: 'guest-panic' }, 'Failed', 'GuestPanicked'],
    [{ internalError: true }, 'Failed', 'Crashed'],
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

// S-314: Pods say which generation their status is about.
// Compat Pods, nodes, drain, P2, yes: Pods: `status.observedGeneration` and `observedGeneration` of conditions
test('podStatusOf() names the generation that it is about, and is written again for another', () => {
  const of = (generation: number, status = {}): Pod => {
    const { metadata, ...rest } = pod(status);
    return { ...rest, metadata: { ...metadata, generation } };
  };
  const view = { state: 'running', startedAt: NOW, address: '127.64.0.1', imageIds: {} } as const;
  const first = podStatusOf(of(1), view, options);
  assert.equal(first.observedGeneration, 1);
  assert.deepEqual([...new Set(first.conditions?.map((c) => c.observedGeneration))], [1]);
  assert.equal(podStatusDiffers(of(1, first), podStatusOf(of(1, first), view, options)), false);
  const second = podStatusOf(of(2, first), view, options);
  assert.equal(second.observedGeneration, 2);
  assert.ok(podStatusDiffers(of(2, first), second));
  assert.ok(!('observedGeneration' in podStatusOf(pod(), view, options)), 'of a server that counts none');
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
  const sidecar = ({ initContainerStatuses }: typeof waiting) => {
    const { ready, started, state } = initContainerStatuses![1]!;
    return [ready, started, Object.keys(state ?? {})[0]];
  };
  assert.deepEqual(sidecar(waiting), [true, true, 'running'], 'a sidecar does not wait for images');

  const view = {
    state: 'running',
    startedAt: NOW,
    address: '127.64.0.1',
    imageIds: { volumeroot: 'disk@sha256:1' },
  } as const;
  const running = podStatusOf(pod({ conditions: [{ type: 'PodScheduled', status: 'True' }] }), view, options);
  assert.deepEqual([running.phase, running.podIP, running.hostIP], ['Running', '100.64.0.1', '127.0.0.1']);
  assert.deepEqual(
    running.containerStatuses?.map((c) => [c.ready, c.imageID]),
    [
      [true, 'launcher'],
      [true, 'disk@sha256:1'],
    ],
  );
  assert.equal(running.initContainerStatuses?.[0]?.state?.terminated?.reason, 'Completed');
  assert.deepEqual(sidecar(running), [true, true, 'running']);
  assert.ok(running.conditions?.some((c) => c.type === 'PodScheduled'));
  assert.equal(podStatusDiffers(pod(running), podStatusOf(pod(running), view, { ...options, now: NOW + 9999 })), false);

  const inGo = JSON.parse(JSON.stringify(running));
  Object.assign(inGo.initContainerStatuses[0].state.terminated, { startedAt: null, finishedAt: null });
  assert.equal(podStatusDiffers(pod(inGo), podStatusOf(pod(inGo), view, options)), false, 'times that are not set');

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
  assert.deepEqual(sidecar(ended), [false, false, 'terminated']);
});

const AT = { node: 'n1', now: NOW };
const GUEST: GuestState = { connected: true, foreign: false, runState: 'running', agentConnected: true };
const view = (guest: Partial<GuestState> = {}, more: Partial<RunningView> = {}): RunningView => ({
  node: 'n1',
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
    spec: { domain: { memory: { guest: '128Mi' }, devices: {} }, volumes: [] },
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
      ipAddress: '100.64.0.1',
      ipAddresses: ['100.64.0.1'],
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
  const shown = [
    { type: 'Paused', status: 'True' },
    { type: 'PortsForwarded', status: 'False' },
  ];
  const well = conditions(runningStatus(vmi({ phase: 'Running', conditions: shown }), view(), NOW));
  assert.deepEqual([well.has('Paused'), well.has('PortsForwarded')], [false, false]);
});

// S-805
test('runningStatus(): conditions have the null that Go writes for a probe that never was', () => {
  const { conditions: made = [] } = runningStatus(vmi({ phase: 'Scheduled' }), view(), NOW) as {
    conditions?: { type: string; lastProbeTime?: null }[];
  };
  assert.ok(made.length > 1);
  for (const { type, lastProbeTime } of made) assert.equal(lastProbeTime, null, type);
});

test('finalStatus() only where the agent owns the phase', () => {
  assert.equal(finalStatus(vmi({ phase: 'Running' }), resultOf({}), AT).phase, 'Failed');
  assert.deepEqual(finalStatus(vmi({ phase: 'Scheduling' }), resultOf({}), AT), {});
  assert.deepEqual(finalStatus(vmi({ phase: 'Succeeded' }), resultOf({}), AT), {});
  assert.deepEqual(finalStatus(vmi({ phase: 'Running', nodeName: 'n2' }), resultOf({}), AT), {});
  assert.deepEqual(runningStatus(vmi({ phase: 'Running', nodeName: 'n2' }), view(), NOW), {});
});

test('finalStatus(): a Pod without a guest ends no instance that runs in another one', () => {
  const of = (phase: string, activePods: Record<string, string> | undefined, guestless: string | undefined) =>
    finalStatus(vmi({ phase, ...(activePods && { activePods }) }), resultOf({}), { ...AT, guestless }).phase;
  assert.equal(of('Running', { other: 'n1' }, 'old'), undefined);
  assert.equal(of('Running', undefined, 'old'), undefined);
  // Its record was damaged.
  assert.equal(of('Running', { own: 'n1' }, 'own'), 'Failed');
  // It never started, and nobody else has.
  assert.equal(of('Scheduled', { own: 'n1' }, 'own'), 'Failed');
  assert.equal(of('Scheduled', undefined, 'own'), 'Failed');
  assert.equal(of('Running', { other: 'n1' }, undefined), 'Failed');
});

// S-1361
test('a guest on a network beside that of Pods: its status, and the annotation of its Pod', () => {
  const segment = { definition: 'ns/wire', podInterface: 'pod16477688c0e' };
  const cards = [
    { name: 'blue', mac: '02:00:00:00:00:02', linkUp: false, segment },
    { name: 'default', mac: '02:00:00:00:00:01', linkUp: true },
  ] as unknown as MachinePlan['interfaces'];
  const plan = { ...view().plan, interfaces: cards };
  const change = runningStatus(vmi({ phase: 'Running' }), view({}, { plan }), NOW);
  assert.deepEqual(
    (change.interfaces as { name: string; ipAddress?: string; podInterfaceName: string; infoSource: string }[]).map(
      ({ name, ipAddress, podInterfaceName, infoSource }) => [name, ipAddress, podInterfaceName, infoSource],
    ),
    [
      ['blue', undefined, 'pod16477688c0e', 'domain, multus-status'],
      ['default', '100.64.0.1', 'eth0', 'domain'],
    ],
  );
  const running = { state: 'running', startedAt: NOW, address: '127.64.0.1', imageIds: {} } as const;
  const KEY = 'k8s.v1.cni.cncf.io/network-status';
  const text = podAnnotationsOf(pod(), { ...running, cards })?.[KEY] ?? '';
  assert.deepEqual(
    JSON.parse(text).map((one: { name: string; default?: boolean; ips?: string[] }) => [
      one.name,
      one.default,
      one.ips,
    ]),
    [
      ['ns/wire', undefined, undefined],
      ['coracle', true, ['100.64.0.1']],
    ],
  );
  const reported: Pod = { ...pod(), metadata: { name: 'p', annotations: { [KEY]: text } } };
  assert.equal(podAnnotationsOf(reported, { ...running, cards }), undefined, 'nothing new to write');
  assert.deepEqual(podAnnotationsOf(reported, { ...running, cards: cards.slice(1) }), { [KEY]: '[]' });
  assert.equal(podAnnotationsOf(pod(), { ...running, cards: cards.slice(1) }), undefined);
});

test('runningStatus(): what the guest agent tells of system, interfaces and frozen file systems', () => {
  const agentFacts = {
    os: { name: 'Debian', id: 'debian' },
    interfaces: [
      { name: 'ens3', mac: '02:00:00:00:00:01', addresses: [{ address: '10.0.2.15', type: 'ipv4' as const }] },
      {
        name: 'docker0',
        mac: '02:00:00:00:00:99',
        addresses: [
          { address: 'fe80::1', type: 'ipv6' as const },
          { address: '172.17.0.1', type: 'ipv4' as const },
        ],
      },
    ],
    frozen: 'frozen' as const,
    missing: [],
  };
  const shown = runningStatus(vmi({ phase: 'Running' }), view({ agentFacts }), AT.now);
  assert.deepEqual([shown.guestOSInfo, shown.fsFreezeStatus], [agentFacts.os, 'frozen']);
  assert.deepEqual(shown.interfaces, [
    {
      name: 'default',
      mac: '02:00:00:00:00:01',
      ipAddress: '100.64.0.1',
      ipAddresses: ['100.64.0.1'],
      podInterfaceName: 'eth0',
      interfaceName: 'ens3',
      infoSource: 'domain, guest-agent',
      queueCount: 1,
      linkState: 'up',
    },
    {
      mac: '02:00:00:00:00:99',
      ipAddress: '172.17.0.1',
      ipAddresses: ['fe80::1', '172.17.0.1'],
      interfaceName: 'docker0',
      infoSource: 'guest-agent',
    },
  ]);
  const before = vmi({ phase: 'Running', ...shown });
  const again = runningStatus(before, view({ agentFacts }), AT.now);
  assert.equal(again.interfaces ?? again.guestOSInfo ?? again.fsFreezeStatus, undefined, 'nothing new to write');
  const thawed = runningStatus(before, view({ agentFacts: { ...agentFacts, frozen: '' } }), AT.now);
  assert.equal(thawed.fsFreezeStatus, null);
  const silent = runningStatus(before, view({ agentConnected: false }), AT.now);
  assert.deepEqual(
    (silent.interfaces as { infoSource: string; interfaceName?: string }[]).map((one) => [
      one.infoSource,
      one.interfaceName,
    ]),
    [['domain', undefined]],
  );
  assert.equal(silent.guestOSInfo, undefined, 'what the guest was last known to be stays');
});

test('podStatusOf(): an ephemeral container is ended at once, with the reason, and stays as it was reported', () => {
  const asked = (status: object = {}): Pod => {
    const made = pod(status);
    return { ...made, spec: { ...made.spec, ephemeralContainers: [{ name: 'why', image: 'busybox' }] } };
  };
  const view = { state: 'running', startedAt: NOW, address: '127.64.0.1', imageIds: {} } as const;
  assert.equal(podStatusOf(pod(), view, options).ephemeralContainerStatuses, undefined);
  const shown = podStatusOf(asked(), view, options);
  const [why] = shown.ephemeralContainerStatuses ?? [];
  assert.deepEqual(
    [why?.name, why?.ready, why?.state?.terminated?.exitCode, why?.state?.terminated?.reason],
    ['why', false, 128, 'StartError'],
  );
  assert.match(why?.state?.terminated?.message ?? '', /runs virtual machines and no containers/);
  const later = podStatusOf(asked(shown), view, { ...options, now: NOW + 60_000 });
  assert.equal(podStatusDiffers(asked(shown), later), false);
});

test('podStatusOf(): a container has what it was made with until a change of its size is granted', () => {
  const view = { state: 'running', startedAt: NOW, address: '127.64.0.1', imageIds: {} } as const;
  const sized = (memory: string, status: object = {}): Pod => {
    const made = pod(status);
    made.spec.containers[0]!.resources = { requests: { memory } };
    return made;
  };
  const has = ({ containerStatuses }: ReturnType<typeof podStatusOf>): unknown =>
    containerStatuses?.[0]?.allocatedResources?.['memory'];
  const shown = ({ conditions }: ReturnType<typeof podStatusOf>): unknown =>
    conditions?.filter(({ type }) => type.startsWith('PodResize')).map((c) => `${c.type} ${c.reason}: ${c.message}`);
  const first = podStatusOf(sized('1Gi'), view, options);
  assert.deepEqual([has(first), shown(first)], ['1Gi', []]);

  const grown = sized('2Gi', first);
  const undecided = podStatusOf(grown, view, options);
  assert.deepEqual([has(undecided), shown(undecided)], ['1Gi', []]);
  const wait = { type: 'wait', reason: 'Deferred', message: 'no room' } as const;
  const waiting = podStatusOf(grown, { ...view, resize: { decision: wait, of: grown } }, options);
  assert.deepEqual([has(waiting), shown(waiting)], ['1Gi', ['PodResizePending Deferred: no room']]);
  const fits = { decision: { type: 'fits' }, of: grown } as const;
  const later = sized('3Gi', waiting);
  assert.equal(has(podStatusOf(later, { ...view, resize: fits }, options)), '1Gi', 'it has changed again since');
  const granted = podStatusOf(sized('2Gi', waiting), { ...view, resize: fits }, options);
  assert.deepEqual([has(granted), shown(granted)], ['2Gi', []]);
  const stuck = podStatusOf(sized('2Gi', granted), { ...view, resize: { trouble: 'refused' } }, options);
  assert.deepEqual(shown(stuck), ['PodResizeInProgress Error: refused']);
});

test('runningStatus(): processors and memory as they are now, and a change of memory that failed', () => {
  const GI = 1024 ** 3;
  const of = vmi({
    phase: 'Running',
    memory: { guestAtBoot: '1Gi', guestCurrent: '1Gi', guestRequested: '1Gi' },
  });
  of.spec.domain.memory = { guest: '2Gi', maxGuest: '4Gi' };
  const hot = (requestedBytes: number, pluggedBytes: number, more: Partial<RunningView> = {}) => {
    const base = view();
    return runningStatus(
      of,
      {
        ...base,
        plan: { ...base.plan, memoryBytes: GI, hotMemory: { bytes: 3 * GI, requestedBytes } },
        guest: { ...base.guest, pluggedBytes },
        ...more,
      },
      NOW,
    );
  };
  assert.equal(hot(0, 0).memory, undefined, 'nothing new');
  assert.deepEqual(hot(GI, GI).memory, { guestAtBoot: '1Gi', guestCurrent: '2Gi', guestRequested: '2Gi' });
  assert.deepEqual(hot(GI, GI / 2).memory, { guestAtBoot: '1Gi', guestCurrent: '1536Mi', guestRequested: '2Gi' });
  const failed = hot(0, 0, { memoryPlugFailed: true }).conditions as { type: string; status: string }[];
  assert.equal(failed.find(({ type }) => type === 'HotMemoryChange')?.status, 'False');
});

// S-1273: An instance says with AgentVersionNotSupported that its guest agent lacks commands, and with AccessCredentialsSynchronized whether the guest has its keys and passwords, or why not.
test('runningStatus(): what the guest agent lacks, and how far the guest has its credentials', () => {
  const facts = (...missing: string[]) => ({ agentFacts: { os: {}, interfaces: [], frozen: '' as const, missing } });
  const of = (status: object, more: Parameters<typeof view>[0], credentials?: RunningView['credentials']) =>
    runningStatus(
      vmi({ phase: 'Running', ...status }),
      { ...view({ agentConnected: true, ...more }), credentials },
      AT.now,
    );
  const said = (conditions: unknown, type: string): string | undefined => {
    const found = (conditions as { type: string; status: string; reason?: string; message?: string }[]).find(
      (one) => one.type === type,
    );
    return found && [found.status, found.reason ?? '', found.message ?? ''].join('|');
  };
  const old = of({}, facts('guest-get-users'));
  const basic = "This guest agent doesn't support required basic commands";
  assert.equal(said(old.conditions, 'AgentVersionNotSupported'), `True|${basic}|`);
  const renewed = of(old, facts());
  assert.equal(said(renewed.conditions, 'AgentVersionNotSupported'), undefined);
  assert.equal(said(renewed.conditions, 'AccessCredentialsSynchronized'), undefined);
  const failed = of({}, facts(), { type: 'failed', reason: 'UnsupportedAgent', message: 'no' });
  assert.equal(said(failed.conditions, 'AccessCredentialsSynchronized'), 'False|UnsupportedAgent|no');
  const synchronized = of(failed, facts(), { type: 'synchronized' });
  assert.equal(said(synchronized.conditions, 'AccessCredentialsSynchronized'), 'True||');
});
