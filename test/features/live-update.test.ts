/** More processors and memory for a running virtual machine: by the node it is on, or by a migration. */
import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, test } from 'node:test';
import { NODES, PODS } from '../../packages/apimachinery/src/types/resource-types.ts';
import type { Pod } from '../../packages/apimachinery/src/types/types.ts';
import {
  KUBEVIRTS,
  VIRTUAL_MACHINE_CLUSTER_INSTANCETYPES,
  VIRTUAL_MACHINE_INSTANCE_MIGRATIONS,
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINES,
  type VirtualMachine,
  type VirtualMachineInstance,
} from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { eventually } from '../testkit/eventually.ts';
import { type FakeCluster, startFakeCluster } from '../testkit/fake-cluster.ts';

let cluster: FakeCluster;
before(async () => {
  cluster = await startFakeCluster({ nodes: ['node-1', 'node-2'] });
  const instancetype = (name: string, cpu: number, memory: string, more = {}) =>
    cluster.client.create(VIRTUAL_MACHINE_CLUSTER_INSTANCETYPES, {
      apiVersion: 'instancetype.kubevirt.io/v1beta1',
      kind: 'VirtualMachineClusterInstancetype',
      metadata: { name },
      spec: { cpu: { guest: cpu }, memory: { guest: memory }, ...more },
    });
  await instancetype('small', 1, '1Gi');
  await instancetype('large', 2, '2Gi');
  await instancetype('small-again', 1, '1Gi');
  await instancetype('other', 2, '2Gi', { ioThreadsPolicy: 'auto' });
});
after(async () => {
  await cluster.stop();
  // Every component had the rights it names and no others, and none of them stumbled.
  assert.deepEqual(cluster.errors, []);
});

const key = (name: string) => ({ namespace: 'default', name });
const cordon = (name: string, unschedulable: boolean) =>
  cluster.client.patch(NODES, { namespace: '', name }, { type: 'merge', body: { spec: { unschedulable } } });
const settings = (spec: object) =>
  cluster.client.patch(KUBEVIRTS, { namespace: 'kubevirt', name: 'kubevirt' }, { type: 'merge', body: { spec } });
const METHODS = { workloadUpdateStrategy: { workloadUpdateMethods: ['LiveMigrate'] } };

/** New guests start on node-1. */
beforeEach(() => cordon('node-2', true));
afterEach(async () => {
  for (const node of cluster.nodes.values()) {
    node.holds.clear();
    node.failure = undefined;
    node.resize = { type: 'fits' };
    node.nudge();
  }
  const { items } = await cluster.client.list(VIRTUAL_MACHINES, { namespace: 'default' });
  for (const { metadata } of items) await cluster.client.delete(VIRTUAL_MACHINES, key(metadata.name ?? ''));
  await eventually(
    async () =>
      [
        ...(await cluster.client.list(VIRTUAL_MACHINE_INSTANCES, { namespace: 'default' })).items,
        ...(await cluster.migrations()),
        ...(await cluster.client.list(PODS, { namespace: 'default' })).items.map(({ metadata }) => ({ metadata })),
      ].map(({ metadata: { managedFields: _, ...metadata }, ...rest }) => ({ metadata, ...rest })),
    (left) => left.length === 0,
  );
  await cordon('node-2', false);
  await settings({
    workloadUpdateStrategy: { workloadUpdateMethods: null },
    configuration: { vmRolloutStrategy: 'LiveUpdate' },
  });
});

async function run(name: string, spec: object = {}): Promise<VirtualMachineInstance> {
  await cluster.client.create(VIRTUAL_MACHINES, {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name, namespace: 'default' },
    spec: {
      runStrategy: 'Always',
      template: { spec: { domain: { devices: {}, cpu: { sockets: 1 }, memory: { guest: '1Gi' } } } },
      ...spec,
    },
  } as unknown as VirtualMachine);
  return eventually(`${name} runs`, async () => {
    const vmi = await cluster.vmi(name).catch(() => undefined);
    return vmi?.status?.phase === 'Running' ? vmi : undefined;
  });
}
const change = (name: string, domain: object) =>
  cluster.client.patch(VIRTUAL_MACHINES, key(name), {
    type: 'merge',
    body: { spec: { template: { spec: { domain } } } },
  });
const patchVm = (name: string, spec: object) =>
  cluster.client.patch(VIRTUAL_MACHINES, key(name), { type: 'merge', body: { spec } });
const untilVm = (name: string, what: string, test: (vm: VirtualMachine) => boolean): Promise<VirtualMachine> =>
  eventually(`${name} ${what}`, async () => {
    const vm = await cluster.client.get(VIRTUAL_MACHINES, key(name));
    return test(vm) ? vm : undefined;
  });
const condition = (of: VirtualMachine | VirtualMachineInstance, type: string) =>
  of.status?.conditions?.find((one) => one.type === type);
const compute = (pod: Pod) => pod.spec.containers.find(({ name }) => name === 'compute')?.resources?.requests;
const launchers = async (name: string): Promise<Pod[]> => {
  const labelSelector = `kubevirt.io/created-by=${(await cluster.vmi(name)).metadata.uid}`;
  return (await cluster.client.list(PODS, { namespace: 'default', labelSelector })).items;
};

// S-246: Sockets and memory of a running machine change live, on its node or by a migration, also by another instance
//   type; the guest never stops.
// S-436
// Compat KubeVirt's API, P1, yes: sockets and memory of a running machine change live (`vmRolloutStrategy`,
//   `liveUpdateConfiguration`), with HotVCPUChange and HotMemoryChange
test('sockets and memory are given to the guest where it is, and its Pod grows with it', async () => {
  const vmi = await run('grows');
  const [before] = await launchers('grows');
  assert.equal(compute(before!)?.['cpu'], '100m');
  cluster.node('node-1').holds.add('plug');
  await change('grows', { cpu: { sockets: 3 }, memory: { guest: '2Gi' } });
  const asked = await cluster.untilVmi('grows', 'asks', (now) => condition(now, 'HotMemoryChange') !== undefined);
  assert.equal(asked.spec.domain.cpu?.sockets, 3);
  assert.deepEqual(condition(asked, 'HotVCPUChange')?.status, 'True');
  await untilVm('grows', 'mirrors', (vm) => condition(vm, 'HotVCPUChange')?.status === 'True');
  cluster.node('node-1').holds.clear();
  cluster.node('node-1').nudge();
  const done = await cluster.untilVmi(
    'grows',
    'has them',
    (now) => !condition(now, 'HotVCPUChange') && !condition(now, 'HotMemoryChange'),
  );
  assert.deepEqual(done.status?.currentCPUTopology, { sockets: 3, cores: 1, threads: 1 });
  // Page tables for 2 GiB, 248 MiB, 8 MiB for each of three processors, 32 MiB of video memory.
  const first = vmi.status?.memory?.memoryOverhead;
  assert.equal(first, '290Mi');
  const grown = await cluster.untilVmi(
    'grows',
    'shows its overhead',
    (now) => now.status?.memory?.memoryOverhead !== first,
  );
  assert.deepEqual(grown.status?.memory, {
    guestAtBoot: '1Gi',
    guestCurrent: '2Gi',
    guestRequested: '2Gi',
    memoryOverhead: '308Mi',
  });
  assert.equal(done.metadata.uid, vmi.metadata.uid);
  const pods = await launchers('grows');
  assert.equal(pods.length, 1);
  assert.equal(pods[0]?.metadata.uid, before?.metadata.uid);
  assert.equal(compute(pods[0]!)?.['cpu'], '300m');
  const vm = await untilVm('grows', 'is reported', (now) => !condition(now, 'HotVCPUChange'));
  assert.equal(condition(vm, 'RestartRequired'), undefined);
  assert.equal((await cluster.migrations('grows')).length, 0);
});

// S-247: What only a restart brings says so, and no more once it is taken back; a node without room says so.
// Compat KubeVirt's API, P1, yes: RestartRequired
test('what only a restart brings says so, and no more once it is taken back', async () => {
  await run('restarts');
  const cases: [change: object, back: object, text: string][] = [
    [
      { cpu: { sockets: 9 } },
      { cpu: { sockets: 1 } },
      "CPU sockets updated in template spec to a value higher than what's available",
    ],
    [{ cpu: { cores: 2 } }, { cpu: { cores: null } }, 'a non-live-updatable field was changed in the template spec'],
    [
      { memory: { guest: '512Mi' } },
      { memory: { guest: '1Gi' } },
      'memory hotplug not supported, Memory hotplug is only available for VMs with at least 1Gi of guest memory',
    ],
  ];
  for (const [there, back, text] of cases) {
    await change('restarts', there);
    const vm = await untilVm('restarts', text, (now) => condition(now, 'RestartRequired') !== undefined);
    assert.equal(condition(vm, 'RestartRequired')?.message, text);
    await change('restarts', back);
    await untilVm('restarts', 'is as it was', (now) => condition(now, 'RestartRequired') === undefined);
  }
  assert.equal((await cluster.vmi('restarts')).spec.domain.cpu?.sockets, 1);
});

// S-247
// Compat KubeVirt's API, P1, yes: `vmRolloutStrategy: Stage`
test('with vmRolloutStrategy Stage every change waits for a restart', async () => {
  await settings({ configuration: { vmRolloutStrategy: 'Stage' } });
  await run('staged');
  await change('staged', { cpu: { sockets: 2 } });
  const vm = await untilVm('staged', 'waits', (now) => condition(now, 'RestartRequired') !== undefined);
  assert.equal(
    condition(vm, 'RestartRequired')?.message,
    'a non-live-updatable field was changed in the template spec',
  );
});

// S-246
test('an instance type with more processors and memory is switched to live, an equal one without any change', async () => {
  await run('typed', {
    instancetype: { name: 'small' },
    template: { spec: { domain: { devices: {} } } },
  });
  const to = (name: string) => patchVm('typed', { instancetype: { name, revisionName: null } });
  await to('small-again');
  await untilVm('typed', 'is captured', ({ status }) => status?.instancetypeRef?.name === 'small-again');
  await to('large');
  const vmi = await cluster.untilVmi('typed', 'is large', ({ status }) => status?.currentCPUTopology?.sockets === 2);
  assert.equal(vmi.spec.domain.memory?.guest, '2Gi');
  const vm = await untilVm('typed', 'settles', (now) => condition(now, 'HotMemoryChange') === undefined);
  assert.equal(condition(vm, 'RestartRequired'), undefined);
  await to('other');
  await untilVm('typed', 'needs a restart', (now) => condition(now, 'RestartRequired') !== undefined);
});

// S-247
// Compat KubeVirt's API, P1, yes: `pods/resize` of launchers: Deferred and Infeasible
test('a node without room says so in the condition, and a migration made by hand brings the change', async () => {
  await run('tight');
  cluster.node('node-1').resize = { type: 'wait', reason: 'Deferred', message: "Node didn't have enough memory" };
  await change('tight', { cpu: { sockets: 2 } });
  const vmi = await cluster.untilVmi('tight', 'waits', (now) => !!condition(now, 'HotVCPUChange')?.message);
  const text = "Node node-1 cannot make the change yet: Deferred: Node didn't have enough memory";
  assert.equal(condition(vmi, 'HotVCPUChange')?.message, text);
  await change('tight', { cpu: { sockets: 3 } });
  const vm = await untilVm('tight', 'says that one is under way', (now) => condition(now, 'Failure') !== undefined);
  assert.equal(condition(vm, 'Failure')?.reason, 'HotPlugCPUError');
  await change('tight', { cpu: { sockets: 2 } });
  await cordon('node-2', false);
  const migration = await cluster.migrate('tight');
  await cluster.untilPhase(migration, 'Succeeded');
  const moved = await cluster.untilVmi('tight', 'has it', (now) => !condition(now, 'HotVCPUChange'));
  assert.equal(moved.status?.nodeName, 'node-2');
  assert.equal(moved.status?.currentCPUTopology?.sockets, 2);
});

// S-248: A migration of an update that fails is made anew.
test('where the cluster migrates workloads, a migration carries the change; one that fails is made anew', async () => {
  await settings(METHODS);
  await run('carried');
  await cordon('node-2', false);
  cluster.node('node-1').failure = 'the stream broke';
  cluster.node('node-2').holds.add('finish').add('target-pod');
  await change('carried', { cpu: { sockets: 2 } });
  const [first] = await eventually('one is made', async () => {
    const made = await cluster.migrations('carried');
    return made.length > 0 && made;
  });
  // Which of two is the newer one is decided by the second they were made in.
  const second = first?.metadata.creationTimestamp ?? '';
  await eventually('the next second', async () => new Date().toISOString() > `${second.slice(0, -1)}.999Z`);
  cluster.node('node-2').holds.delete('target-pod');
  cluster.node('node-2').nudge();
  const failed = await eventually('one has failed', async () =>
    (await cluster.migrations('carried')).find(({ status }) => status?.phase === 'Failed'),
  );
  assert.match(failed.metadata.name ?? '', /^kubevirt-workload-update-/);
  assert.equal(failed.metadata.annotations?.['kubevirt.io/workloadUpdateMigration'], '');
  assert.equal(failed.spec.priority, 'user-triggered');
  const text = 'A live migration to a launcher pod of the new size brings the change';
  const vmi = await cluster.untilVmi(
    'carried',
    'says what brings it',
    (now) => condition(now, 'HotVCPUChange')?.message === text,
  );
  assert.equal(vmi.status?.currentCPUTopology?.sockets, 1);
  assert.equal(vmi.status?.nodeName, 'node-1');
  cluster.node('node-1').failure = undefined;
  cluster.node('node-2').holds.clear();
  const next = await eventually('the next one waits out its pause', async () =>
    (await cluster.migrations('carried')).find(({ metadata }) => metadata.uid !== failed.metadata.uid),
  );
  // It would start by itself after twenty seconds.
  await cluster.client.patch(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, key(next.metadata.name ?? ''), {
    type: 'merge',
    body: { metadata: { annotations: { 'kubevirt.io/func-test-ignore-migration-backoff': '' } } },
  });
  await cluster.untilPhase(next.metadata.name ?? '', 'Succeeded');
  const moved = await cluster.untilVmi('carried', 'has it', (now) => !condition(now, 'HotVCPUChange'));
  assert.deepEqual([moved.status?.nodeName, moved.status?.currentCPUTopology?.sockets], ['node-2', 2]);
  assert.equal((await cluster.migrations('carried')).length, 2);
});

// S-246
test('with no other node the change is made where the guest is, also where the cluster migrates workloads', async () => {
  await settings(METHODS);
  await run('alone');
  await change('alone', { cpu: { sockets: 2 } });
  await cluster.untilVmi('alone', 'has it', ({ status }) => status?.currentCPUTopology?.sockets === 2);
  assert.equal((await cluster.migrations('alone')).length, 0);
});

// S-1292: A guest whose launcher is of another version than new ones get is labelled and counted in the KubeVirt object, and is moved
//   or, where it cannot move, evicted, as `workloadUpdateStrategy` says.
// Compat KubeVirt's API, P2, yes: `workloadUpdateStrategy`: LiveMigrate, Evict, batches, outdated launchers,
//   `outdatedVirtualMachineInstanceWorkloads`
test('guests in launchers of another version are moved, or evicted where they cannot move', async () => {
  const migratable = { domain: { devices: {}, memory: { guest: '64Mi' } } };
  cluster.node('node-1').migratable = false;
  const stays = await run('old-stays', { template: { spec: migratable } });
  cluster.node('node-1').migratable = true;
  await run('old-moves', { template: { spec: migratable } });
  await cordon('node-2', false);
  const counted = async () =>
    (await cluster.client.get(KUBEVIRTS, { namespace: 'kubevirt', name: 'kubevirt' })).status
      ?.outdatedVirtualMachineInstanceWorkloads;
  const mark = (vmi: VirtualMachineInstance) => vmi.metadata.labels?.['kubevirt.io/outdatedLauncherImage'];
  await settings({ imageTag: 'v2' });
  await eventually('both are counted', async () => (await counted()) === 2);
  for (const name of ['old-stays', 'old-moves']) await cluster.untilVmi(name, 'is marked', (vmi) => mark(vmi) === '');
  await settings({ workloadUpdateStrategy: { workloadUpdateMethods: ['LiveMigrate', 'Evict'] } });
  const moved = await cluster.untilVmi('old-moves', 'has moved', (vmi) => mark(vmi) === undefined);
  assert.deepEqual(
    [moved.status?.nodeName, moved.status?.launcherContainerImageVersion],
    ['node-2', 'coracle/virt-launcher:v2'],
  );
  // Once: its status names the image of the launcher it left for a moment more.
  assert.equal((await cluster.migrations('old-moves')).length, 1);
  const again = await eventually('the other one is started anew', async () => {
    const vmi = await cluster.vmi('old-stays').catch(() => undefined);
    return vmi && vmi.metadata.uid !== stays.metadata.uid && vmi.status?.phase === 'Running' ? vmi : undefined;
  });
  assert.equal(again.status?.launcherContainerImageVersion, 'coracle/virt-launcher:v2');
  assert.match((await cluster.events('old-stays')).join('\n'), /Normal SuccessfulEvict Initiated eviction of pod/);
  await eventually('none is outdated', async () => (await counted()) === 0);
  await settings({ imageTag: null });
});

// S-439: An instance type may leave processors open (`cpu.guest: 0`) and GPUs without a name.
test('an instance type that leaves the processors open, and a GPU without a name, are taken', async () => {
  await cluster.client.create(VIRTUAL_MACHINE_CLUSTER_INSTANCETYPES, {
    apiVersion: 'instancetype.kubevirt.io/v1beta1',
    kind: 'VirtualMachineClusterInstancetype',
    metadata: { name: 'memory-alone' },
    spec: { cpu: { guest: 0 }, memory: { guest: '64Mi' } },
  });
  await cluster.client.create(VIRTUAL_MACHINE_CLUSTER_INSTANCETYPES, {
    apiVersion: 'instancetype.kubevirt.io/v1beta1',
    kind: 'VirtualMachineClusterInstancetype',
    metadata: { name: 'gpu' },
    spec: { cpu: { guest: 1 }, memory: { guest: '64Mi' }, gpus: [{ deviceName: 'vendor.example/gpu' }] },
  } as unknown as Parameters<typeof cluster.client.create>[1]);
  const vmi = await run('memory-alone', {
    instancetype: { name: 'memory-alone' },
    template: { spec: { domain: { devices: {} } } },
  });
  assert.deepEqual(vmi.status?.currentCPUTopology, { sockets: 1, cores: 1, threads: 1 });
  assert.equal(vmi.spec.domain.memory?.guest, '64Mi');
});
