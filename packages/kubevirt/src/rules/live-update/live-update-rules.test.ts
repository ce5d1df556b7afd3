import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { partly } from '../../../../../test/testkit/partly.ts';
import type { Node, Pod } from '../../../../apimachinery/src/types/types.ts';
import type { KubeVirt, VirtualMachineInstance, VirtualMachineInstanceMigration } from '../../kinds/kubevirt.ts';
import { launcherResources } from '../launcher/launcher-resources.ts';
import type { MachinePlan } from '../machine/machine-plan.ts';
import { carrierOf } from './carrier.ts';
import { nextPlug } from './next-plug.ts';
import { pendingChanges } from './pending-changes.ts';
import { coversInstance, isResizing, podResizeDecision, resizeOf, resizeProblem, shrinkOf } from './pod-resize.ts';
import { workloadUpdatePlan } from './workload-update-plan.ts';

const RATIO = { cpuAllocationRatio: 10 };
const GI = 1024 ** 3;

/** An instance whose guest has one socket and 1Gi, and is to have this. */
function vmi(sockets: number, guest: string, more: object = {}): VirtualMachineInstance {
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { name: 'a', namespace: 'b', uid: 'u' },
    spec: {
      domain: {
        devices: {},
        cpu: { sockets, cores: 1, threads: 1, maxSockets: 4 },
        memory: { guest, maxGuest: '4Gi' },
      },
    },
    status: {
      phase: 'Running',
      nodeName: 'one',
      currentCPUTopology: { sockets: 1, cores: 1, threads: 1 },
      memory: { guestAtBoot: '1Gi', guestCurrent: '1Gi', guestRequested: '1Gi' },
      conditions: [{ type: 'LiveMigratable', status: 'True' }],
      ...more,
    },
  } as unknown as VirtualMachineInstance;
}
const sizeOf = (of: VirtualMachineInstance) => {
  const { requests } = launcherResources(of.spec, { ...RATIO, useEmulation: true });
  return { cpu: requests['cpu']!, memory: requests['memory']! };
};
/** A launcher Pod that asks for one size and has been given another. */
function pod(asks: Record<string, string>, has: Record<string, string> | undefined = asks, uid = 'p'): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: uid, namespace: 'b', uid },
    spec: { nodeName: 'one', containers: [{ name: 'compute', resources: { requests: asks } }] },
    status: { phase: 'Running', ...(has && { containerStatuses: [{ name: 'compute', allocatedResources: has }] }) },
  } as unknown as Pod;
}
const small = sizeOf(vmi(1, '1Gi'));
const large = sizeOf(vmi(3, '2Gi'));

describe('what is pending', () => {
  const cases: [name: string, of: VirtualMachineInstance, vcpus: boolean, memory: boolean][] = [
    ['nothing', vmi(1, '1Gi'), false, false],
    ['memory in other words', vmi(1, '1024Mi'), false, false],
    ['sockets', vmi(2, '1Gi'), true, false],
    ['memory', vmi(1, '2Gi'), false, true],
    ['both', vmi(2, '2Gi'), true, true],
    ['a guest that reports nothing', vmi(2, '2Gi', { currentCPUTopology: undefined, memory: undefined }), false, false],
  ];
  for (const [name, of, vcpus, memory] of cases)
    it(name, () => assert.deepEqual(pendingChanges(of), { vcpus, memory }));
  it('nothing of a guest without maxima', () => {
    const fixed = vmi(2, '2Gi');
    delete fixed.spec.domain.cpu!.maxSockets;
    delete fixed.spec.domain.memory!.maxGuest;
    assert.deepEqual(pendingChanges(fixed), { vcpus: false, memory: false });
  });
});

describe('the size of the Pod', () => {
  it('follows the instance', () => {
    assert.deepEqual(resizeOf(vmi(3, '2Gi'), pod(small), RATIO), { requests: large, limits: {} });
    assert.equal(resizeOf(vmi(3, '2Gi'), pod(large), RATIO), undefined);
  });
  it('keeps memory that the guest has not given back yet', () => {
    const still = vmi(1, '1Gi', { memory: { guestAtBoot: '1Gi', guestCurrent: '2Gi', guestRequested: '1Gi' } });
    assert.equal(resizeOf(still, pod({ cpu: small.cpu, memory: large.memory }), RATIO), undefined);
    assert.equal(shrinkOf(still, pod(large), RATIO), undefined);
  });
  it('gives back memory, and nothing else, when no change waits', () => {
    assert.deepEqual(shrinkOf(vmi(1, '1Gi'), pod(large), RATIO)?.requests, { memory: small.memory });
    assert.equal(shrinkOf(vmi(1, '1Gi'), pod({ ...small, cpu: '900m' }), RATIO), undefined, 'another ratio');
    assert.equal(shrinkOf(vmi(3, '2Gi'), pod(small), RATIO), undefined, 'larger');
  });
  it('counts when the node has given it', () => {
    assert.equal(coversInstance(pod(large), vmi(3, '2Gi'), RATIO), true);
    assert.equal(coversInstance(pod(large, small), vmi(3, '2Gi'), RATIO), false);
    assert.equal(coversInstance(pod(large, undefined), vmi(3, '2Gi'), RATIO), true, 'a Pod never resized');
    assert.deepEqual([isResizing(pod(large, small)), isResizing(pod(large))], [true, false]);
    assert.equal(isResizing(pod({ cpu: '1' }, { cpu: '1000m' })), false);
  });
  it('tells its trouble', () => {
    const status = pod(large, small);
    const condition = { type: 'PodResizePending', status: 'True' as const, reason: 'Deferred', message: 'no room' };
    status.status!.conditions = [condition];
    assert.equal(resizeProblem(status), 'Deferred: no room');
    assert.equal(resizeProblem(pod(large)), undefined);
  });
});

describe('the room of a node', () => {
  const decision = (cpu: number, ...others: Pod[]) => {
    const allocatable = new Map([
      ['cpu', cpu],
      ['memory', 64 * GI],
    ]);
    const mine = pod(large, small);
    return podResizeDecision(mine, { allocatable, pods: [mine, ...others] });
  };
  const reason = (of: ReturnType<typeof decision>) => (of.type === 'wait' ? of.reason : of.type);
  it('fits, is there later, or never', () => {
    assert.equal(reason(decision(300)), 'fits');
    assert.equal(reason(decision(350, pod({ cpu: '100m' }, undefined, 'q'))), 'Deferred');
    assert.equal(reason(decision(299)), 'Infeasible');
  });
  it('is taken by what others have, not by what they wait for, nor by those that ended', () => {
    assert.equal(reason(decision(400, pod({ cpu: '900m' }, { cpu: '100m' }, 'q'))), 'fits');
    const ended = pod({ cpu: '900m' }, undefined, 'q');
    ended.status!.phase = 'Succeeded';
    assert.equal(reason(decision(300, ended)), 'fits');
  });
  it('is not asked for what a Pod gives back', () => {
    const less = pod(small, large);
    assert.equal(podResizeDecision(less, { allocatable: new Map(), pods: [less] }).type, 'fits');
  });
});

describe('what the agent may plug', () => {
  const plan = {
    memoryBytes: GI,
    hotMemory: { bytes: 3 * GI, requestedBytes: 0 },
    cpu: { model: 'max', features: [], sockets: 1, cores: 1, threads: 1, maxSockets: 4 },
  } as unknown as MachinePlan;
  const next = (of: VirtualMachineInstance, on: Pod, machine: MachinePlan = plan) =>
    nextPlug(of, on, { plan: machine, sizing: RATIO });
  it('nothing before the Pod has been given it', () => {
    assert.deepEqual(next(vmi(3, '2Gi'), pod(large, small)), {});
    assert.deepEqual(next(vmi(3, '2Gi'), pod(large)), { sockets: 3, requestedBytes: GI });
  });
  it('nothing twice, and nothing that was not asked for', () => {
    const has = { ...plan, cpu: { ...plan.cpu, sockets: 3 }, hotMemory: { bytes: 3 * GI, requestedBytes: GI } };
    assert.deepEqual(next(vmi(3, '2Gi'), pod(large), has), {});
    assert.deepEqual(next(vmi(1, '1Gi'), pod(small)), {});
  });
  it('memory back at once', () => {
    const status = { memory: { guestAtBoot: '1Gi', guestCurrent: '3Gi', guestRequested: '3Gi' } };
    const has = { ...plan, hotMemory: { bytes: 3 * GI, requestedBytes: 2 * GI } };
    assert.deepEqual(next(vmi(1, '2Gi', status), pod(small), has), { requestedBytes: GI });
  });
  it('says what the machine has no room for', () => {
    const { hotMemory: _, ...bare } = { ...plan, cpu: { ...plan.cpu, maxSockets: 2 } };
    const { impossible, ...rest } = next(vmi(3, '2Gi'), pod(large), bare);
    assert.deepEqual(rest, {});
    assert.match(impossible?.vcpus ?? '', /room for 2 sockets, not for 3/);
    assert.match(impossible?.memory ?? '', /no room for that much memory/);
  });
  it('not again what has failed', () => {
    const conditions = [{ type: 'HotMemoryChange', status: 'False' }];
    assert.deepEqual(next(vmi(1, '2Gi', { conditions }), pod(large)), {});
  });
});

const kubevirt = (...workloadUpdateMethods: string[]): KubeVirt =>
  ({ spec: { workloadUpdateStrategy: { workloadUpdateMethods } } }) as unknown as KubeVirt;
const node = (name: string, more: { spec?: object; ready?: string; labels?: object } = {}): Node =>
  ({
    metadata: { name, labels: { 'kubevirt.io/schedulable': 'true', ...more.labels } },
    spec: more.spec ?? {},
    status: { conditions: [{ type: 'Ready', status: more.ready ?? 'True' }] },
  }) as unknown as Node;

describe('what carries a change', () => {
  const one = node('one');
  const stuck = vmi(2, '1Gi', { conditions: [{ type: 'LiveMigratable', status: 'False' }] });
  const cases: [name: string, of: VirtualMachineInstance, methods: string[], nodes: Node[], expected: string][] = [
    ['a migration', vmi(2, '1Gi'), ['LiveMigrate'], [one, node('two')], 'migration'],
    ['not where the cluster makes none', vmi(2, '1Gi'), [], [one, node('two')], 'node'],
    ['not where guests are only evicted', vmi(2, '1Gi'), ['Evict'], [one, node('two')], 'node'],
    ['not for a guest that cannot move', stuck, ['LiveMigrate'], [one, node('two')], 'node'],
    ['not without another node', vmi(2, '1Gi'), ['LiveMigrate'], [one], 'node'],
    [
      'nor with one that is cordoned',
      vmi(2, '1Gi'),
      ['LiveMigrate'],
      [one, node('two', { spec: { unschedulable: true } })],
      'node',
    ],
    [
      'nor with one that is not ready',
      vmi(2, '1Gi'),
      ['LiveMigrate'],
      [one, node('two', { ready: 'Unknown' })],
      'node',
    ],
    [
      'nor with one for other Pods',
      vmi(2, '1Gi'),
      ['LiveMigrate'],
      [one, node('two', { labels: { 'kubevirt.io/schedulable': 'false' } })],
      'node',
    ],
  ];
  for (const [name, of, methods, nodes, expected] of cases)
    it(name, () => assert.equal(carrierOf(of, { kubevirt: kubevirt(...methods), nodes }), expected));
});

describe('the migrations of updates', () => {
  const waits = (name: string, more: object = {}) => {
    const of = vmi(2, '1Gi', {
      conditions: [
        { type: 'LiveMigratable', status: 'True' },
        { type: 'HotVCPUChange', status: 'True' },
      ],
      ...more,
    });
    return { ...of, metadata: { ...of.metadata, name } };
  };
  const migration = (vmiName: string, phase: string, ours = true): VirtualMachineInstanceMigration =>
    ({
      metadata: {
        namespace: 'b',
        name: `of-${vmiName}`,
        annotations: ours ? { 'kubevirt.io/workloadUpdateMigration': '' } : {},
      },
      spec: { vmiName },
      status: { phase },
    }) as unknown as VirtualMachineInstanceMigration;
  const plan = (
    instances: VirtualMachineInstance[],
    migrations: VirtualMachineInstanceMigration[] = [],
    parallel = 5,
  ) => {
    const { migrate, abort } = workloadUpdatePlan({
      instances,
      migrations,
      kubevirt: kubevirt('LiveMigrate'),
      nodes: [node('one'), node('two')],
      parallelMigrationsPerCluster: parallel,
      sinceEvictionMs: Number.POSITIVE_INFINITY,
    });
    return [migrate.map(({ metadata }) => metadata.name), abort.map(({ metadata }) => metadata.name)];
  };
  it('one for each that waits, as many as may run', () => {
    assert.deepEqual(plan([waits('x'), waits('y'), vmi(1, '1Gi')]), [['x', 'y'], []]);
    assert.deepEqual(plan([waits('x'), waits('y')], [migration('z', 'Running')], 2), [['x'], []]);
  });
  it('none beside another, whoever made it, and one more after it', () => {
    assert.deepEqual(plan([waits('x')], [migration('x', 'Pending', false)]), [[], []]);
    assert.deepEqual(plan([waits('x')], [migration('x', 'Failed')]), [['x'], []]);
  });
  it('none for a guest that is moving, ends, or has ended', () => {
    assert.deepEqual(plan([waits('x', { migrationState: { migrationUid: 'm' } })]), [[], []]);
    assert.deepEqual(plan([waits('x', { phase: 'Succeeded' })]), [[], []]);
    const going = waits('x');
    assert.deepEqual(plan([{ ...going, metadata: { ...going.metadata, deletionTimestamp: 'now' } }]), [[], []]);
  });
  it('takes back its own when nothing waits any more, unless the guest has arrived', () => {
    assert.deepEqual(plan([vmi(1, '1Gi')], [migration('a', 'Scheduling')]), [[], ['of-a']]);
    assert.deepEqual(plan([vmi(1, '1Gi')], [migration('a', 'Scheduling', false)]), [[], []]);
    const migrationState = { migrationUid: 'm', targetNodeDomainReadyTimestamp: 'now', completed: true };
    assert.deepEqual(plan([vmi(1, '1Gi', { migrationState })], [migration('a', 'Running')]), [[], []]);
  });
});

describe('launchers of another version', () => {
  const CURRENT = 'coracle/virt-launcher:builtin';
  const running = (name: string, image: string, migratable: 'True' | 'False' = 'True', labels = {}) => {
    const of = vmi(1, '1Gi', {
      launcherContainerImageVersion: image,
      conditions: [{ type: 'LiveMigratable', status: migratable }],
    });
    return { ...of, metadata: { ...of.metadata, name, labels: { 'kubevirt.io/nodeName': 'one', ...labels } } };
  };
  const names = (list: readonly { readonly metadata: { readonly name?: string } }[]) =>
    list.map(({ metadata }) => metadata.name);
  const plan = (
    instances: VirtualMachineInstance[],
    methods: string[],
    { since = Number.POSITIVE_INFINITY, strategy = {}, nodes = 2 } = {},
  ) => {
    const { migrate, evict, mark, outdated } = workloadUpdatePlan({
      instances,
      migrations: [],
      kubevirt: partly<KubeVirt>({ spec: { workloadUpdateStrategy: { workloadUpdateMethods: methods, ...strategy } } }),
      nodes: [node('one'), node('two')].slice(0, nodes),
      parallelMigrationsPerCluster: 5,
      sinceEvictionMs: since,
    });
    return { migrate: names(migrate), evict: names(evict), mark: names(mark.map((one) => one.vmi)), outdated };
  };
  const old = [running('moves', 'old'), running('stays', 'old', 'False'), running('new', CURRENT)];
  const cases: [name: string, got: object, expected: object][] = [
    ['are counted, and left alone without a method', plan(old, []), { migrate: [], evict: [], outdated: 2 }],
    ['are moved where they can', plan(old, ['LiveMigrate']), { migrate: ['moves'], evict: [], outdated: 2 }],
    ['are evicted', plan(old, ['Evict']), { migrate: [], evict: ['moves', 'stays'], outdated: 2 }],
    [
      'are moved, else evicted',
      plan(old, ['LiveMigrate', 'Evict']),
      { migrate: ['moves'], evict: ['stays'], outdated: 2 },
    ],
    [
      'are evicted in batches',
      plan(old, ['Evict'], { strategy: { batchEvictionSize: 1 } }),
      { migrate: [], evict: ['moves'], outdated: 2 },
    ],
    [
      'not before a minute has gone by',
      plan(old, ['Evict'], { since: 59_999 }),
      { migrate: [], evict: [], outdated: 2 },
    ],
    [
      'or what the cluster says',
      plan(old, ['Evict'], { since: 5000, strategy: { batchEvictionInterval: '5s' } }),
      { migrate: [], evict: ['moves', 'stays'], outdated: 2 },
    ],
  ];
  it('are left alone right after a move, until their status names the image of the launcher they moved to', () => {
    const arrived = ['True', 'False'].map((can) =>
      running(can, 'old', can as 'True' | 'False', { 'kubevirt.io/nodeName': 'two' }),
    );
    assert.deepEqual(plan(arrived, ['LiveMigrate', 'Evict']), {
      migrate: [],
      evict: [],
      mark: ['True', 'False'],
      outdated: 2,
    });
  });
  for (const [name, { mark: _, ...got }, expected] of cases as [string, { mark: unknown }, object][])
    it(name, () => assert.deepEqual(got, expected));
  it('are marked, and no longer once they are not', () => {
    const labels = { 'kubevirt.io/outdatedLauncherImage': '' };
    const all = [...old, running('was', CURRENT, 'True', labels), running('known', 'old', 'True', labels)];
    assert.deepEqual(plan(all, []).mark, ['moves', 'stays', 'was']);
  });
});
