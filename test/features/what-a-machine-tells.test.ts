/** What a VirtualMachine and its instance tell of claims, volumes and nodes, as KubeVirt's own controllers write it. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { ResourceType } from '../../packages/apimachinery/src/meta/gvk.ts';
import type { KubeObject } from '../../packages/apimachinery/src/meta/object.ts';
import { PERSISTENT_VOLUME_CLAIMS, PODS } from '../../packages/apimachinery/src/types/resource-types.ts';
import type { Pod } from '../../packages/apimachinery/src/types/types.ts';
import {
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINES,
  type VirtualMachine,
} from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { eventually } from '../testkit/eventually.ts';
import { type FakeCluster, startFakeCluster } from '../testkit/fake-cluster.ts';

type VmCondition = NonNullable<NonNullable<VirtualMachine['status']>['conditions']>[number];

let cluster: FakeCluster;
before(async () => {
  cluster = await startFakeCluster({
    nodes: ['node-1'],
    components: 'vm,vmi,migration,evacuation,workload-update,scheduler,disruption-controller,snapshot',
  });
});
after(async () => {
  await cluster.stop();
  assert.deepEqual(cluster.errors, []);
});

const create = (name: string, spec: object = {}) =>
  cluster.client.create(VIRTUAL_MACHINES, {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name, namespace: 'default' },
    spec: {
      runStrategy: 'Always',
      template: { spec: { domain: { devices: {}, memory: { guest: '64Mi' } }, ...spec } },
    },
  } as unknown as VirtualMachine);
const untilVm = (name: string, what: string, holds: (vm: VirtualMachine) => boolean): Promise<VirtualMachine> => {
  let last: VirtualMachine | undefined;
  return eventually(`${name} ${what}`, async () => {
    last = await cluster.client.get(VIRTUAL_MACHINES, { namespace: 'default', name });
    return holds(last) ? last : undefined;
  }).catch((error: Error) => {
    throw new Error(`${error.message}: ${JSON.stringify(last?.status)}`);
  });
};
const launchers = async (name: string): Promise<Pod[]> =>
  (
    await cluster.client.list(PODS, {
      namespace: 'default',
      labelSelector: `vmi.kubevirt.io/id=${name}`,
    })
  ).items;
const synchronized = (vm: VirtualMachine) => vm.status?.conditions?.find(({ type }) => type === 'Synchronized');

// S-440: A missing claim, a failed mount and a machine that cannot be built stand on the machine as a condition and an
//   event; volumes say why they cannot be snapshotted.
// S-598
test('a claim that is missing is an event of the instance, a condition of the machine, and reported on snapshots', async () => {
  const volumes = [
    { name: 'data', persistentVolumeClaim: { claimName: 'data' } },
    { name: 'spare', emptyDisk: { capacity: '1Mi' } },
  ];
  await create('claims', { volumes });
  const vm = await untilVm(
    'claims',
    'misses it',
    (now) => synchronized(now)?.reason === 'FailedPvcNotFound' && now.status?.volumeSnapshotStatuses !== undefined,
  );
  const missing = 'PVC default/data does not exist, waiting for it to appear';
  assert.equal(synchronized(vm)?.message, missing);
  assert.equal(vm.status?.printableStatus, 'ErrorPvcNotFound');
  assert.deepEqual(vm.status?.volumeSnapshotStatuses, [
    { name: 'data', enabled: false, reason: 'PVC default/data not found' },
    { name: 'spare', enabled: false, reason: 'Snapshot is not supported for this volumeSource type [spare]' },
  ]);
  await eventually('events of instance and machine', async () => {
    const reported = (await cluster.events('claims')).filter((text) => text === `Warning FailedPvcNotFound ${missing}`);
    return reported.length === 2 || undefined;
  });
  await cluster.client.create(PERSISTENT_VOLUME_CLAIMS, {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name: 'data', namespace: 'default' },
    spec: { accessModes: ['ReadWriteOnce'], storageClassName: 'local', resources: { requests: { storage: '1Mi' } } },
  });
  await cluster.client.patch(
    PERSISTENT_VOLUME_CLAIMS,
    { namespace: 'default', name: 'data' },
    { type: 'merge', body: { status: { phase: 'Bound' } } },
    { subresource: 'status' },
  );
  const runs = await untilVm('claims', 'runs', ({ status }) => status?.printableStatus === 'Running');
  assert.equal(synchronized(runs), undefined);
  // The class of a fresh server takes snapshots.
  await untilVm('claims', 'sees the claim', ({ status }) => status?.volumeSnapshotStatuses?.[0]?.enabled === true);
});

// S-441: A running instance has `guestOSInfo`, its launcher Pod the label of its node, and a terminating Namespace no
//   grace period.
test('a running instance has guest information, and its launcher Pod the label of its node', async () => {
  const vmi = await cluster.run('plain');
  assert.deepEqual(vmi.status?.guestOSInfo, {});
  await eventually('the Pod is labelled', async () => {
    const [pod] = await launchers('plain');
    return pod?.metadata.labels?.['kubevirt.io/nodeName'] === 'node-1' || undefined;
  });
});

// S-440
test('a volume that cannot be mounted, and a machine that cannot be built, stand on the machine', async () => {
  for (const [name, status, reason] of [
    [
      'mount',
      {
        containerStatuses: [{ name: 'compute', state: { waiting: { reason: 'FailedMount', message: 'no such map' } } }],
      },
      'FailedMount',
    ],
    ['memory', { phase: 'Failed', reason: 'InvalidMachine', message: 'no such map' }, 'InvalidMachine'],
  ] as const) {
    // No node takes it: what an agent would write of it is written here.
    await create(name, { nodeSelector: { nowhere: 'true' } });
    const pod = await eventually(`the Pod of ${name}`, async () => (await launchers(name))[0]);
    await cluster.client.patch(
      PODS,
      { namespace: 'default', name: pod.metadata.name ?? '' },
      { type: 'merge', body: { status } },
      { subresource: 'status' },
    );
    await eventually(
      `${name} tells`,
      async () => (await cluster.events(name)).includes(`Warning ${reason} no such map`) || undefined,
    );
    if (name === 'mount') {
      const vm = await untilVm(name, 'tells', (now) => synchronized(now)?.reason === reason);
      assert.equal(synchronized(vm)?.message, 'no such map');
    }
  }
});

// S-805: Conditions of machines and instances have the null that Go writes for a probe that never was, so that JSON
//   patches of typed clients that test them hold.
test('a JSON patch that tests the conditions as Go writes them holds, for machine and instance', async () => {
  await create('typed');
  await untilVm('typed', 'runs', (vm) => vm.status?.ready === true);
  const key = { namespace: 'default', name: 'typed' };
  // Times that are not set are null, texts that are empty are left out.
  const asGo = ({ type, status, reason, message, ...times }: VmCondition) => ({
    type,
    status,
    lastProbeTime: times.lastProbeTime ?? null,
    lastTransitionTime: times.lastTransitionTime ?? null,
    ...(reason && { reason }),
    ...(message && { message }),
  });
  for (const [type, options] of [
    [VIRTUAL_MACHINES, { subresource: 'status' }],
    [VIRTUAL_MACHINE_INSTANCES, {}],
  ] as const)
    await eventually(`conditions of ${type.kind}`, async () => {
      const { status } = await cluster.client.get(
        type as ResourceType<KubeObject & Pick<VirtualMachine, 'status'>>,
        key,
      );
      const conditions = status?.conditions ?? [];
      // What the node of this test says of migrations is its own.
      const body = conditions.flatMap((condition, i) =>
        condition.reason === 'Fake'
          ? []
          : [{ op: 'test', path: `/status/conditions/${i}`, value: asGo(condition) } as const],
      );
      assert.ok(body.length > 0, type.kind);
      // One that was changed in between is asked again.
      return cluster.client.patch(type as ResourceType<KubeObject>, key, { type: 'json', body }, options).then(
        () => true,
        () => undefined,
      );
    });
});
