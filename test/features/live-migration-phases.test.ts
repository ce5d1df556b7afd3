import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { NAMESPACES, NODES, PODS, RESOURCE_QUOTAS } from '../../packages/apimachinery/src/types/resource-types.ts';
import type { Pod } from '../../packages/apimachinery/src/types/types.ts';
import { isNotFound } from '../../packages/client/src/api-failure.ts';
import { MIGRATION_POLICIES, type MigrationPolicy } from '../../packages/kubevirt/src/kinds/kinds.ts';
import {
  VIRTUAL_MACHINE_INSTANCE_MIGRATIONS,
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINES,
  type VirtualMachine,
} from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { eventually } from '../testkit/eventually.ts';
import { type FakeCluster, startFakeCluster } from '../testkit/fake-cluster.ts';
import type { FakeNode } from '../testkit/fake-node.ts';

let cluster: FakeCluster;
before(async () => {
  cluster = await startFakeCluster();
});
after(async () => {
  await cluster.stop();
  // Every component had the rights it names and no others, and none of them stumbled.
  const unexpected = cluster.errors.filter(
    ({ fields }) => !/exceeded quota|violates PodSecurity/.test(String(fields['error'])),
  );
  assert.deepEqual(unexpected, []);
});
afterEach(() => {
  for (const node of cluster.nodes.values()) {
    node.holds.clear();
    node.failure = undefined;
    node.nudge();
  }
});

const LIVE = { evictionStrategy: 'LiveMigrate' };
const key = (name: string) => ({ namespace: 'default', name });
const everywhere = (act: (node: FakeNode) => void): void => {
  for (const node of cluster.nodes.values()) act(node);
};
const release = (hold: Parameters<FakeNode['holds']['delete']>[0]): void =>
  everywhere((node) => {
    node.holds.delete(hold);
    node.nudge();
  });
const launchers = async (vmiUid: string): Promise<Pod[]> =>
  (await cluster.client.list(PODS, { namespace: 'default', labelSelector: `kubevirt.io/created-by=${vmiUid}` })).items;
const gone = (name: string): Promise<true> =>
  eventually(`migration ${name} is gone`, async () => (await cluster.migration(name)) === undefined);
const settled = (name: string) =>
  cluster.untilVmi(name, 'settled', ({ metadata: { labels = {} }, status }) => {
    const isHome = labels['kubevirt.io/nodeName'] === status?.nodeName;
    return isHome && labels['kubevirt.io/migrationTargetNodeName'] === undefined;
  });

// S-194: A migration passes through every phase; one that fails, is aborted or is deleted leaves the guest where it is
//   and takes the target away.
// Compat KubeVirt's API, P0, yes: phases, conditions and events of a migration
test('a migration passes through every phase, and the guest is on another node', async () => {
  const vmi = await cluster.run('one', {
    ...LIVE,
    volumes: [{ name: 'root', containerDisk: { image: 'reg.test/disk:v1' } }],
  });
  const from = vmi.status?.nodeName;
  const name = await cluster.migrate('one');
  const done = await cluster.untilPhase(name, 'Succeeded');
  assert.deepEqual(
    done.status?.phaseTransitionTimestamps?.map(({ phase }) => phase),
    ['Pending', 'Scheduling', 'Scheduled', 'PreparingTarget', 'TargetReady', 'Running', 'Succeeded'],
  );
  const moved = await settled('one');
  assert.notEqual(moved.status?.nodeName, from);
  assert.equal(moved.status?.phase, 'Running', 'never shown as ended');
  const state = moved.status?.migrationState;
  assert.deepEqual(
    [state?.sourceNode, state?.targetNode, state?.completed, state?.failed],
    [from, moved.status?.nodeName, true, undefined],
  );
  assert.equal(state?.migrationConfiguration?.completionTimeoutPerGiB, 150);

  const ended = await eventually('the migration keeps the last word', async () => {
    const found = await cluster.migration(name);
    return found?.status?.migrationState?.completed && !found.metadata.finalizers?.length ? found : undefined;
  });
  assert.deepEqual(ended.status?.migrationState, state);
  assert.deepEqual((await cluster.events(name)).sort(), [
    `Normal SuccessfulCreate Created migration target pod ${state?.targetPod}`,
    'Normal SuccessfulHandOver Migration target pod is ready for preparation by virt-handler.',
    'Normal SuccessfulMigration Source node reported migration succeeded',
  ]);

  const pods = await launchers(vmi.metadata.uid ?? '');
  const target = pods.find(({ metadata }) => metadata.name === state?.targetPod);
  assert.equal(target?.metadata.labels?.['kubevirt.io/migrationJobUID'], done.metadata.uid);
  assert.equal(target?.metadata.annotations?.['kubevirt.io/migrationJobName'], name);
  assert.equal(
    target?.spec.containers.find((container) => container.name === 'volumeroot')?.image,
    `reg.test/disk@sha256:${'a'.repeat(64)}`,
    'the image the source runs, not what the tag says now',
  );
  await eventually('the source Pod has completed', async () => {
    const source = (await launchers(vmi.metadata.uid ?? '')).find(({ metadata }) => metadata.name === state?.sourcePod);
    return source?.status?.phase === 'Succeeded';
  });
  await cluster.untilVmi(
    'one',
    'with one active Pod',
    ({ status }) => Object.keys(status?.activePods ?? {}).join() === target?.metadata.uid,
  );
});

test('both Pods are active while it lasts, and the VM is shown as Migrating', async () => {
  everywhere((node) => node.holds.add('finish'));
  await cluster.client.create(VIRTUAL_MACHINES, {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name: 'shown', namespace: 'default' },
    spec: {
      runStrategy: 'Always',
      template: { spec: { ...LIVE, domain: { devices: {}, memory: { guest: '64Mi' } } } },
    },
  } as unknown as VirtualMachine);
  const status = async () => (await cluster.client.get(VIRTUAL_MACHINES, key('shown'))).status;
  await eventually('it runs', async () => (await status())?.printableStatus === 'Running');
  const uid = (await cluster.vmi('shown')).metadata.uid;
  // As virtctl migrate does.
  const path = '/apis/subresources.kubevirt.io/v1/namespaces/default/virtualmachines/shown/migrate';
  assert.equal((await cluster.board.send('PUT', path, {})).status, 202);
  const [made] = await cluster.migrations('shown');
  await cluster.untilPhase(made?.metadata.name ?? '', 'Running');
  await eventually('Migrating', async () => (await status())?.printableStatus === 'Migrating');
  await cluster.untilVmi(
    'shown',
    'with two active Pods',
    (vmi) => Object.keys(vmi.status?.activePods ?? {}).length === 2,
  );
  release('finish');
  await cluster.untilPhase(made?.metadata.name ?? '', 'Succeeded');
  await eventually('Running again', async () => (await status())?.printableStatus === 'Running');
  assert.equal((await cluster.vmi('shown')).metadata.uid, uid, 'the same instance');
});

test('back and forth: the newest Pod on a node counts', async () => {
  const nodes = ['node-1', 'node-2'];
  await cluster.client.patch(
    NODES,
    { namespace: '', name: 'node-3' },
    { type: 'merge', body: { spec: { unschedulable: true } } },
  );
  const vmi = await cluster.run('forth', LIVE);
  const seen = [vmi.status?.nodeName];
  for (let i = 0; i < 3; i++) {
    await cluster.untilPhase(await cluster.migrate('forth'), 'Succeeded');
    seen.push((await settled('forth')).status?.nodeName);
  }
  await cluster.client.patch(
    NODES,
    { namespace: '', name: 'node-3' },
    { type: 'merge', body: { spec: { unschedulable: false } } },
  );
  const other = nodes.find((name) => name !== seen[0]);
  assert.deepEqual(seen, [seen[0], other, seen[0], other]);
});

// S-194
test('a failed migration leaves the guest where it is and takes the target away', async () => {
  const vmi = await cluster.run('fails', LIVE);
  everywhere((node) => {
    node.failure = 'the network went away';
    node.holds.add('finish');
  });
  const name = await cluster.migrate('fails');
  await cluster.untilPhase(name, 'Failed');
  const left = await settled('fails');
  assert.deepEqual([left.status?.phase, left.status?.nodeName], ['Running', vmi.status?.nodeName]);
  assert.equal(left.status?.migrationState?.failureReason, 'the network went away');
  await eventually('one launcher is left', async () => (await launchers(vmi.metadata.uid ?? '')).length === 1);
  assert.ok((await cluster.events(name)).includes('Warning FailedMigration source node reported migration failed'));
  // The next one may begin at once: back-off is for those nobody asked for.
  everywhere((node) => {
    node.failure = undefined;
  });
  release('finish');
  await cluster.untilPhase(await cluster.migrate('fails'), 'Succeeded');
});

const CANCELS: readonly [hold: 'target-pod' | 'prepare-target' | 'start' | 'finish', phase: string][] = [
  ['target-pod', 'Scheduling'],
  ['prepare-target', 'PreparingTarget'],
  ['start', 'TargetReady'],
  ['finish', 'Running'],
];
for (const [hold, phase] of CANCELS) {
  // S-194
  // Compat KubeVirt's API, P0, yes: a migration that is deleted in any phase
  test(`deleted in ${phase}: the guest stays, the target goes, the object goes last`, async () => {
    const at = `cancel-${phase.toLowerCase()}`;
    const vmi = await cluster.run(at, LIVE);
    everywhere((node) => node.holds.add(hold));
    const name = await cluster.migrate(at);
    const running = await cluster.untilPhase(name, phase);
    await cluster.client.delete(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, key(name));
    await gone(name);
    const left = await settled(at);
    assert.deepEqual([left.status?.phase, left.status?.nodeName], ['Running', vmi.status?.nodeName]);
    await eventually('one launcher is left', async () => (await launchers(vmi.metadata.uid ?? '')).length === 1);
    const state = left.status?.migrationState;
    if (phase === 'Scheduling')
      assert.notEqual(state?.migrationUid, running.metadata.uid, 'the agents never heard of it');
    else assert.deepEqual([state?.failed, state?.abortRequested, state?.abortStatus], [true, true, 'Succeeded']);
    const aborted = 'Normal SuccessfulAbortMigration Migration is ready to be canceled by virt-handler.';
    if (phase === 'Running')
      await eventually('the abort is reported', async () => (await cluster.events(name)).includes(aborted));
    release(hold);
    await cluster.untilPhase(await cluster.migrate(at), 'Succeeded');
  });
}

for (const [hold, phase] of CANCELS) {
  // S-194
  test(`controllers that start anew in ${phase} go on where the others were`, async () => {
    const at = `restart-${phase.toLowerCase()}`;
    const vmi = await cluster.run(at, LIVE);
    everywhere((node) => node.holds.add(hold));
    const name = await cluster.migrate(at);
    await cluster.untilPhase(name, phase);
    // What the agents do meanwhile is found later: here the whole move, but for a target Pod that waits.
    await cluster.restart(async () => {
      release(hold);
      if (phase === 'Running' || phase === 'TargetReady')
        await cluster.untilVmi(at, 'moved', ({ status }) => status?.nodeName !== vmi.status?.nodeName);
    });
    await cluster.untilPhase(name, 'Succeeded');
    const moved = await settled(at);
    assert.deepEqual([moved.status?.phase, moved.metadata.uid], ['Running', vmi.metadata.uid]);
    assert.notEqual(moved.status?.nodeName, vmi.status?.nodeName);
    assert.equal((await launchers(vmi.metadata.uid ?? '')).length, 2, 'no third Pod was made');
  });
}

test('an instance that is deleted takes its migration along', async () => {
  const vmi = await cluster.run('deleted', LIVE);
  everywhere((node) => node.holds.add('finish'));
  const name = await cluster.migrate('deleted');
  await cluster.untilPhase(name, 'Running');
  await cluster.client.delete(VIRTUAL_MACHINE_INSTANCES, key('deleted'));
  await gone(name);
  await eventually('the instance is gone', async () => {
    try {
      await cluster.vmi('deleted');
      return false;
    } catch (error) {
      return isNotFound(error);
    }
  });
  assert.deepEqual(await launchers(vmi.metadata.uid ?? ''), []);
});

test('a target Pod that is taken away ends the migration, not the guest', async () => {
  const vmi = await cluster.run('robbed', LIVE);
  everywhere((node) => node.holds.add('prepare-target'));
  const name = await cluster.migrate('robbed');
  await cluster.untilPhase(name, 'PreparingTarget');
  const state = (await cluster.vmi('robbed')).status?.migrationState;
  await cluster.client.delete(PODS, key(state?.targetPod ?? ''));
  await cluster.untilPhase(name, 'Failed');
  const left = await settled('robbed');
  assert.deepEqual([left.status?.phase, left.status?.nodeName], ['Running', vmi.status?.nodeName]);
  assert.deepEqual(
    [left.status?.migrationState?.failed, left.status?.migrationState?.failureReason],
    [true, 'Target pod is down'],
  );
});

test('no more than five finished migrations are kept for an instance', async () => {
  await cluster.run('often', LIVE);
  const names: string[] = [];
  for (let i = 0; i < 7; i++) {
    const name = await cluster.migrate('often', { metadata: { generateName: undefined, name: `often-${i}` } });
    await cluster.untilPhase(name, 'Succeeded');
    names.push(name);
  }
  await gone('often-0');
  await gone('often-1');
  const kept = (await cluster.migrations('often')).map(({ metadata }) => metadata.name).sort();
  assert.deepEqual(kept, names.slice(2));
});

// Compat KubeVirt's API, P1, yes: MigrationPolicy: the best match shapes the migration
test('the policy that matches best shapes the migration', async () => {
  const policy = (name: string, labels: Record<string, string>, more: object): MigrationPolicy =>
    ({
      apiVersion: 'migrations.kubevirt.io/v1alpha1',
      kind: 'MigrationPolicy',
      metadata: { name },
      spec: { selectors: { virtualMachineInstanceSelector: labels }, ...more },
    }) as MigrationPolicy;
  await cluster.client.create(MIGRATION_POLICIES, policy('a-loose', { tier: 'gold' }, { completionTimeoutPerGiB: 1 }));
  await cluster.client.create(
    MIGRATION_POLICIES,
    policy(
      'b-tight',
      { tier: 'gold', zone: 'x' },
      { bandwidthPerMigration: '64Mi', allowPostCopy: true, maxDowntimeMs: 40 },
    ),
  );
  await cluster.run('policed', LIVE, { labels: { tier: 'gold', zone: 'x' } });
  const name = await cluster.migrate('policed');
  await cluster.untilPhase(name, 'Succeeded');
  const state = (await cluster.vmi('policed')).status?.migrationState;
  assert.equal(state?.migrationPolicyName, 'b-tight');
  const { bandwidthPerMigration, allowPostCopy, allowWorkloadDisruption, completionTimeoutPerGiB, maxDowntimeMs } =
    state?.migrationConfiguration ?? {};
  assert.deepEqual(
    [bandwidthPerMigration, allowPostCopy, allowWorkloadDisruption, completionTimeoutPerGiB, maxDowntimeMs],
    ['64Mi', true, true, 150, 40],
  );
});

test('a quota that leaves no room for the target is a condition, and the migration goes on when there is room', async () => {
  const namespace = 'tight';
  await cluster.client.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
  const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default', namespace } };
  await cluster.board.send('POST', `/api/v1/namespaces/${namespace}/serviceaccounts`, account);
  const quota = {
    apiVersion: 'v1',
    kind: 'ResourceQuota',
    metadata: { name: 'pods', namespace },
    spec: { hard: { pods: '1' } },
  };
  await cluster.client.create(RESOURCE_QUOTAS, quota);
  // What the quota controller does.
  const write = (hard: string, used: string) =>
    cluster.client.patch(
      RESOURCE_QUOTAS,
      { namespace, name: 'pods' },
      { type: 'merge', body: { status: { hard: { pods: hard }, used: { pods: used } } } },
      { subresource: 'status' },
    );
  await write('1', '0');
  const root = `/apis/kubevirt.io/v1/namespaces/${namespace}`;
  await cluster.board.send('POST', `${root}/virtualmachineinstances`, {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { name: 'q' },
    spec: { ...LIVE, domain: { devices: {}, memory: { guest: '64Mi' } } },
  });
  const read = async (path: string) => (await cluster.board.send('GET', `${root}/${path}`)).json;
  await eventually('q runs', async () => (await read('virtualmachineinstances/q')).status?.phase === 'Running');
  await cluster.board.send('POST', `${root}/virtualmachineinstancemigrations`, {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstanceMigration',
    metadata: { name: 'm' },
    spec: { vmiName: 'q' },
  });
  const refused = await eventually('it is refused', async () => {
    const { status } = await read('virtualmachineinstancemigrations/m');
    return status?.conditions?.length ? status : undefined;
  });
  assert.deepEqual(
    [refused.phase, refused.conditions[0].type, refused.conditions[0].status],
    ['Pending', 'migrationRejectedByResourceQuota', 'True'],
  );
  await cluster.client.patch(
    RESOURCE_QUOTAS,
    { namespace, name: 'pods' },
    { type: 'merge', body: { spec: { hard: { pods: '5' } } } },
  );
  await write('5', '1');
  const done = await eventually('it goes on', async () => {
    const { status } = await read('virtualmachineinstancemigrations/m');
    return status?.phase === 'Succeeded' ? status : undefined;
  });
  assert.deepEqual(done.conditions ?? [], []);
});

// Compat KubeVirt's API, P1, yes: events of a migration: called off, host-model without a node for it
test('a guest with the CPU of its host says so when no other node has it', async () => {
  const vmi = await cluster.run('host-model', {
    ...LIVE,
    domain: { devices: {}, memory: { guest: '64Mi' }, cpu: { model: 'host-model' } },
  });
  const node = { namespace: '', name: vmi.status?.nodeName ?? '' };
  const model = 'host-model-cpu.node.kubevirt.io/Rare';
  const label = (value: string | null) =>
    cluster.client.patch(NODES, node, { type: 'merge', body: { metadata: { labels: { [model]: value } } } });
  await label('true');
  // The controller reads nodes from its cache, which the answer to a write is ahead of.
  await eventually('a target that asks for that model', async () => {
    const name = await cluster.migrate('host-model');
    const target = await eventually('a target Pod', async () =>
      (await launchers(vmi.metadata.uid ?? '')).find(
        ({ metadata }) => metadata.annotations?.['kubevirt.io/migrationJobName'] === name,
      ),
    );
    if (target.spec.nodeSelector?.['cpu-model-migration.node.kubevirt.io/Rare'] === 'true') return true;
    await cluster.untilPhase(name, 'Succeeded');
    return false;
  });
  const expected =
    'Warning NoSuitableNodesForHostModelMigration Migration cannot proceed since no node is suitable to run the required CPU model / required features: map[cpu-model-migration.node.kubevirt.io/Rare:true]';
  await eventually('the event', async () => (await cluster.events('host-model')).includes(expected));
  for (const { metadata } of await cluster.migrations('host-model')) {
    await cluster.client.delete(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, key(metadata.name ?? ''));
    await gone(metadata.name ?? '');
  }
  await label(null);
});

test('a namespace that lets no launcher in has its own message when the target Pod is refused', async () => {
  await cluster.run('guarded', LIVE);
  const enforce = (level: string | null) =>
    cluster.client.patch(
      NAMESPACES,
      { namespace: '', name: 'default' },
      { type: 'merge', body: { metadata: { labels: { 'pod-security.kubernetes.io/enforce': level } } } },
    );
  await enforce('restricted');
  await cluster.migrate('guarded');
  const reported = await eventually('the event', async () =>
    (await cluster.events('guarded')).find((event) => event.includes('violates PodSecurity')),
  );
  assert.match(
    reported,
    /^Warning FailedCreate failed to render launch manifest: failed to create target pod for vmi default\/guarded, it needs a privileged namespace to run: .*violates PodSecurity/,
  );
  await enforce(null);
  const [made] = await cluster.migrations('guarded');
  await cluster.untilPhase(made?.metadata.name ?? '', 'Succeeded');
});
