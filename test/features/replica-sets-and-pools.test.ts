/** VirtualMachineInstanceReplicaSets and VirtualMachinePools: as many instances and machines as are asked for. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { CONTROLLER_REVISIONS } from '../../packages/apimachinery/src/types/resource-types.ts';
import {
  VIRTUAL_MACHINE_INSTANCE_REPLICA_SETS,
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINE_POOLS,
  VIRTUAL_MACHINES,
  type VirtualMachine,
  type VirtualMachineInstance,
  type VirtualMachineInstanceReplicaSet,
  type VirtualMachinePool,
} from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { POOL_REVISION_LABEL } from '../../packages/kubevirt/src/rules/sets/pool-member.ts';
import { eventually } from '../testkit/eventually.ts';
import { type FakeCluster, startFakeCluster } from '../testkit/fake-cluster.ts';
import { type Part, partly } from '../testkit/partly.ts';

let cluster: FakeCluster;
before(async () => {
  cluster = await startFakeCluster({
    nodes: ['node-1'],
    components: 'vm,vmi,scheduler,replica-set,pool,garbage-collector-controller',
  });
});
after(async () => {
  await cluster.stop();
  // Every component had the rights it names and no others; what the API refuses is tried again.
  assert.deepEqual(cluster.errors, []);
});

const key = (name: string) => ({ namespace: 'default', name });
const spec = (memory = '64Mi') => ({ domain: { devices: {}, memory: { guest: memory } } });
const selects = (app: string) => ({ matchLabels: { app } });
const labelled = (app: string) => ({ labels: { app } });
const MERGE = 'application/merge-patch+json';
const SETS = '/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstancereplicasets';
const POOLS = '/apis/pool.kubevirt.io/v1beta1/namespaces/default/virtualmachinepools';

const instancesOf = async (app: string): Promise<VirtualMachineInstance[]> =>
  (await cluster.client.list(VIRTUAL_MACHINE_INSTANCES, { namespace: 'default', labelSelector: `app=${app}` })).items;
const machinesOf = async (app: string): Promise<VirtualMachine[]> =>
  (await cluster.client.list(VIRTUAL_MACHINES, { namespace: 'default', labelSelector: `app=${app}` })).items;
const makeSet = (name: string, more: Part<VirtualMachineInstanceReplicaSet['spec']> = {}) =>
  cluster.client.create(
    VIRTUAL_MACHINE_INSTANCE_REPLICA_SETS,
    partly<VirtualMachineInstanceReplicaSet>({
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachineInstanceReplicaSet',
      metadata: { name, namespace: 'default' },
      spec: { selector: selects(name), template: { metadata: labelled(name), spec: spec() }, ...more },
    }),
  );
const untilSet = (name: string, what: string, test: (set: VirtualMachineInstanceReplicaSet) => boolean) =>
  eventually(`${name} ${what}`, async () => {
    const set = await cluster.client.get(VIRTUAL_MACHINE_INSTANCE_REPLICA_SETS, key(name));
    return test(set) ? set : undefined;
  });
const isUp = (replicas: number) => (of: VirtualMachineInstanceReplicaSet | VirtualMachinePool) =>
  of.status?.replicas === replicas && of.status.readyReplicas === replicas;
const patchSet = (name: string, body: object) =>
  cluster.client.patch(VIRTUAL_MACHINE_INSTANCE_REPLICA_SETS, key(name), { type: 'merge', body: { spec: body } });

// S-1285: A VirtualMachineInstanceReplicaSet makes its instances, is scaled through its spec and its scale subresource,
//   replaces those that end, takes and lets go by its selector, rests while it is paused, and takes them with it.
// Compat KubeVirt's API, P1, yes: VirtualMachineInstanceReplicaSet: replicas, scale, replacement, adoption, pause, deletion
test('a replica set keeps as many instances as it asks for', async () => {
  await makeSet('web', { replicas: 2 });
  const set = await untilSet('web', 'has two', isUp(2));
  assert.equal(set.status?.labelSelector, 'app=web');
  const first = await instancesOf('web');
  assert.ok(first.every(({ metadata }) => /^web[a-z0-9]{5}$/.test(metadata.name ?? '')));
  assert.equal(new Set(first.map((vmi) => vmi.spec.domain.firmware?.uuid)).size, 2, 'each has a UUID of its own');

  const scale = await cluster.board.send('PUT', `${SETS}/web/scale`, {
    apiVersion: 'autoscaling/v1',
    kind: 'Scale',
    metadata: { name: 'web', namespace: 'default' },
    spec: { replicas: 3 },
  });
  assert.equal(scale.status, 200, JSON.stringify(scale.json));
  await untilSet('web', 'has three', isUp(3));
  const shown = await cluster.board.send('GET', `${SETS}/web/scale`);
  assert.deepEqual(shown.json.status, { replicas: 3, selector: 'app=web' });

  // One that ends is replaced.
  const lost = first[0]?.metadata.name ?? '';
  const failed = await cluster.board.report(
    'PATCH',
    `/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstances/${lost}`,
    { status: { phase: 'Failed' } },
    MERGE,
  );
  assert.equal(failed.status, 200, JSON.stringify(failed.json));
  await eventually('it is replaced', async () => {
    const now = await instancesOf('web');
    return now.length === 3 && !now.some(({ metadata }) => metadata.name === lost) ? now : undefined;
  });
  await untilSet('web', 'has three again', isUp(3));
  await patchSet('web', { replicas: 1 });
  await untilSet('web', 'has one', isUp(1));
  const events = (await cluster.events('web')).map((event) => event.split(' ').slice(0, 2).join(' '));
  assert.deepEqual([...new Set(events)].sort(), ['Normal SuccessfulCreate', 'Normal SuccessfulDelete']);
  await cluster.client.delete(VIRTUAL_MACHINE_INSTANCE_REPLICA_SETS, key('web'));
  await eventually('its instances go with it', async () => (await instancesOf('web')).length === 0);
});

// S-1285
test('a replica set takes what it selects, lets go what it does not, and rests while it is paused', async () => {
  await cluster.run('stray', spec(), labelled('taker'));
  await makeSet('taker', { replicas: 2 });
  await untilSet('taker', 'has two', isUp(2));
  const stray = await cluster.vmi('stray');
  assert.equal(stray.metadata.ownerReferences?.[0]?.name, 'taker');
  await cluster.client.patch(VIRTUAL_MACHINE_INSTANCES, key('stray'), {
    type: 'merge',
    body: { metadata: { labels: { app: 'free' } } },
  });
  await eventually('it is let go', async () => (await cluster.vmi('stray')).metadata.ownerReferences === undefined);
  await eventually('another takes its place', async () => (await instancesOf('taker')).length === 2);

  await patchSet('taker', { paused: true, replicas: 5 });
  const paused = await untilSet(
    'taker',
    'is paused',
    ({ status }) => status?.conditions?.[0]?.type === 'ReplicaPaused',
  );
  assert.deepEqual([paused.status?.conditions?.[0]?.reason, paused.status?.replicas], ['Paused', 2]);
  assert.equal((await instancesOf('taker')).length, 2);
  await patchSet('taker', { paused: null, replicas: 3 });
  const resumed = await untilSet('taker', 'goes on', isUp(3));
  assert.deepEqual(resumed.status?.conditions ?? [], []);
});

// S-1285
test('a replica set whose instances are refused says so', async () => {
  const quota = { apiVersion: 'v1', kind: 'ResourceQuota', metadata: { name: 'none' }, spec: { hard: {} } };
  quota.spec.hard = { 'count/virtualmachineinstances.kubevirt.io': '0' };
  await cluster.board.send('POST', '/api/v1/namespaces', { metadata: { name: 'small' } });
  const made = await cluster.board.send('POST', '/api/v1/namespaces/small/resourcequotas', quota);
  assert.equal(made.status, 201, JSON.stringify(made.json));
  const used = await cluster.board.send(
    'PATCH',
    '/api/v1/namespaces/small/resourcequotas/none/status',
    { status: { hard: quota.spec.hard, used: { 'count/virtualmachineinstances.kubevirt.io': '0' } } },
    MERGE,
  );
  assert.equal(used.status, 200, JSON.stringify(used.json));
  const { status, json } = await cluster.board.send('POST', SETS.replace('default', 'small'), {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstanceReplicaSet',
    metadata: { name: 'refused' },
    spec: { selector: selects('r'), template: { metadata: labelled('r'), spec: spec() } },
  });
  assert.equal(status, 201, JSON.stringify(json));
  await eventually('ReplicaFailure', async () => {
    const { json: set } = await cluster.board.send('GET', `${SETS.replace('default', 'small')}/refused`);
    const condition = set.status?.conditions?.[0];
    return condition?.type === 'ReplicaFailure' && /exceeded quota/.test(condition.message);
  });
  await cluster.board.send('DELETE', `${SETS.replace('default', 'small')}/refused`);
  // What was refused is tried again, and logged.
  const refusals = cluster.errors.filter(({ fields }) => /exceeded quota/.test(String(fields['error'])));
  assert.ok(refusals.length > 0);
  for (const record of refusals) (cluster.errors as unknown[]).splice(cluster.errors.indexOf(record), 1);
});

const makePool = (
  name: string,
  more: Part<VirtualMachinePool['spec']> = {},
  machine: Part<VirtualMachine['spec']> = {},
) =>
  cluster.client.create(
    VIRTUAL_MACHINE_POOLS,
    partly<VirtualMachinePool>({
      apiVersion: 'pool.kubevirt.io/v1beta1',
      kind: 'VirtualMachinePool',
      metadata: { name, namespace: 'default' },
      spec: {
        selector: selects(name),
        virtualMachineTemplate: {
          metadata: labelled(name),
          spec: { runStrategy: 'Always', template: { metadata: labelled(name), spec: spec() }, ...machine },
        },
        ...more,
      },
    }),
  );
const untilPool = (name: string, what: string, test: (pool: VirtualMachinePool) => boolean) =>
  eventually(`${name} ${what}`, async () => {
    const pool = await cluster.client.get(VIRTUAL_MACHINE_POOLS, key(name));
    return test(pool) ? pool : undefined;
  });
const patchPool = (name: string, body: object) =>
  cluster.client.patch(VIRTUAL_MACHINE_POOLS, key(name), { type: 'merge', body: { spec: body } });
const names = async (app: string) => (await machinesOf(app)).map(({ metadata }) => metadata.name).sort();

// S-1286: A VirtualMachinePool makes numbered machines, is scaled, brings a new template to its machines and their
//   instances within maxUnavailable, and keeps the disks of machines that go where it is asked to.
// Compat KubeVirt's API, P1, yes: VirtualMachinePool (v1beta1, v1alpha1): replicas, names, scale, update strategies, autohealing
test('a pool keeps as many machines as it asks for, and brings them a new template', async () => {
  const byNumber = { proactive: { selectionPolicy: { sortPolicy: 'DescendingOrder' as const } } };
  await makePool('farm', { replicas: 2, maxUnavailable: 1, scaleInStrategy: byNumber, updateStrategy: byNumber });
  await untilPool('farm', 'has two', isUp(2));
  assert.deepEqual(await names('farm'), ['farm-0', 'farm-1']);
  const [zero] = await machinesOf('farm');
  const uuid = zero?.spec.template.spec?.domain.firmware?.uuid;
  assert.ok(uuid);

  const { status } = await cluster.board.send('PATCH', `${POOLS}/farm/scale`, { spec: { replicas: 3 } }, MERGE);
  assert.equal(status, 200);
  await untilPool('farm', 'has three', isUp(3));
  assert.deepEqual(await names('farm'), ['farm-0', 'farm-1', 'farm-2']);
  await patchPool('farm', { replicas: 2 });
  await eventually('the last goes', async () => (await names('farm')).join() === 'farm-0,farm-1');
  assert.equal((await cluster.vmi('farm-0')).metadata.labels?.[POOL_REVISION_LABEL], 'farm-1');

  await patchPool('farm', { virtualMachineTemplate: { spec: { template: { spec: spec('128Mi') } } } });
  await eventually('each instance has the new memory', async () => {
    const now = await instancesOf('farm');
    return now.length === 2 && now.every((vmi) => vmi.spec.domain.memory?.guest === '128Mi') ? now : undefined;
  });
  const updated = await untilPool('farm', 'is up', isUp(2));
  const [after] = await machinesOf('farm');
  assert.equal(after?.spec.template.spec?.domain.firmware?.uuid, uuid, 'a member stays who it is');
  assert.equal(after?.metadata.labels?.[POOL_REVISION_LABEL], `farm-${updated.metadata.generation}`);
  await eventually('revisions that nobody names go', async () => {
    const { items } = await cluster.client.list(CONTROLLER_REVISIONS, {
      namespace: 'default',
      labelSelector: 'coracle.dev/pool',
    });
    const left = items.map(({ metadata }) => metadata.name).filter((name) => name?.startsWith('farm-'));
    return left.join() === `farm-${updated.metadata.generation}`;
  });

  await cluster.client.delete(VIRTUAL_MACHINE_POOLS, key('farm'));
  await eventually('its machines go with it', async () => (await names('farm')).length === 0);
});

// S-1286
test('a pool that keeps disks gives them to the next machine of the name', async () => {
  const keeps = {
    proactive: { selectionPolicy: { sortPolicy: 'DescendingOrder' as const }, statePreservation: 'Offline' as const },
  };
  await makePool(
    'disks',
    { replicas: 1, scaleInStrategy: keeps },
    {
      runStrategy: 'Halted',
      dataVolumeTemplates: [
        {
          metadata: { name: 'root' },
          spec: {
            source: { blank: {} },
            pvc: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Mi' } } },
          },
        },
      ],
      template: { spec: { ...spec(), volumes: [{ name: 'root', dataVolume: { name: 'root' } }] } },
    },
  );
  const disk = async (): Promise<{ uid: string; ownerReferences?: { uid: string }[] } | undefined> => {
    const path = '/apis/cdi.kubevirt.io/v1beta1/namespaces/default/datavolumes/root-0';
    return (await cluster.board.send('GET', path)).json.metadata;
  };
  const made = await eventually('the disk is there', async () => ((await disk())?.uid ? disk() : undefined));
  await patchPool('disks', { replicas: 0 });
  await eventually('the machine goes', async () => (await names('disks')).length === 0);
  await patchPool('disks', { replicas: 1 });
  await eventually('it comes back', async () => (await names('disks')).join() === 'disks-0');
  const [vm] = await machinesOf('disks');
  const owned = async () => (await disk())?.ownerReferences?.[0]?.uid === vm?.metadata.uid;
  await eventually('the disk is its own again', owned);
  assert.equal((await disk())?.uid, made.uid, 'the disk was never away');
  await cluster.client.delete(VIRTUAL_MACHINE_POOLS, key('disks'));
  await eventually('with the pool its disks go', async () => (await disk())?.uid === undefined);
});

// S-1286
test('what is wrong with a pool is refused with its place', async () => {
  const base = {
    selector: selects('p'),
    virtualMachineTemplate: { metadata: labelled('p'), spec: { runStrategy: 'Always', template: { spec: spec() } } },
  };
  const cases: [more: object, field: string, message: RegExp][] = [
    [{ selector: selects('other') }, 'spec.selector', /does not match labels/],
    [{ updateStrategy: { proactive: {}, unmanaged: {} } }, 'spec.updateStrategy', /exactly one/],
    [{ scaleInStrategy: {} }, 'spec.scaleInStrategy', /exactly one/],
    [
      { scaleInStrategy: { proactive: { statePreservation: 'Online' } } },
      'spec.scaleInStrategy.proactive.statePreservation',
      /memory of machines that go is not kept/,
    ],
    [{ maxUnavailable: 'some' }, 'spec.maxUnavailable', /not a percentage/],
    [
      { virtualMachineTemplate: { ...base.virtualMachineTemplate, spec: { template: { spec: spec() } } } },
      'spec.virtualMachineTemplate.spec.running',
      /./,
    ],
    [
      {
        virtualMachineTemplate: {
          ...base.virtualMachineTemplate,
          spec: { running: true, template: { spec: { domain: { devices: { disks: [{ name: 'testdisk' }] } } } } },
        },
      },
      'spec.virtualMachineTemplate.spec.template.spec.domain.devices.disks[0].name',
      /^spec\.virtualMachineTemplate\.spec\.template\.spec\.domain\.devices\.disks\[0\]\.Name 'testdisk' not found/,
    ],
    [
      {
        virtualMachineTemplate: {
          metadata: labelled('p'),
          spec: {
            runStrategy: 'Always',
            template: {
              spec: { domain: { devices: {}, resources: { requests: { memory: '1Ki' } } } },
            },
          },
        },
      },
      'spec.virtualMachineTemplate.spec.template.spec.domain.resources.requests.memory',
      /./,
    ],
  ];
  for (const [more, field, message] of cases) {
    const { status, json } = await cluster.board.send('POST', POOLS, {
      apiVersion: 'pool.kubevirt.io/v1beta1',
      kind: 'VirtualMachinePool',
      metadata: { name: 'wrong' },
      spec: { ...base, ...more },
    });
    assert.equal(status, 422, JSON.stringify(json));
    const causes: { field: string; message: string }[] = json.details.causes;
    const found = causes.find((cause) => cause.field === field);
    assert.match(found?.message ?? '', message, JSON.stringify(causes));
  }
  await makePool('fixed', { replicas: 0 });
  const changed = await cluster.board.send(
    'PATCH',
    `${POOLS}/fixed`,
    {
      spec: { selector: { matchLabels: { app: 'new' } } },
    },
    MERGE,
  );
  assert.equal(changed.status, 422);
  assert.match(changed.json.message, /selector is immutable/);
});
