/** Amounts that the API takes and no node has: the Pod waits, the machine says so, and nothing fails on the way. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { PODS, RESOURCE_QUOTAS } from '../../packages/apimachinery/src/types/resource-types.ts';
import type { Pod } from '../../packages/apimachinery/src/types/types.ts';
import { VIRTUAL_MACHINES, type VirtualMachine } from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { eventually } from '../testkit/eventually.ts';
import { type FakeCluster, startFakeCluster } from '../testkit/fake-cluster.ts';

let cluster: FakeCluster;
before(async () => {
  cluster = await startFakeCluster({ nodes: ['node-1'] });
});
after(async () => {
  await cluster.stop();
  assert.deepEqual(cluster.errors, []);
});

/** A billion times what 64 bits count. */
const BEYOND = `${'9'.repeat(30)}e10`;

const MACHINES: Record<string, object> = {
  'requested-memory': { resources: { requests: { memory: '1Ei' } } },
  'guest-memory': { memory: { guest: '1Ei' } },
  'limited-memory': {
    memory: { guest: '64Mi' },
    resources: { requests: { memory: '1Ei' }, limits: { memory: '2Ei' } },
  },
  'more-than-64-bits': { memory: { guest: BEYOND } },
  'limited-cpu': { memory: { guest: '64Mi' }, resources: { limits: { cpu: '1Ei' } } },
  'many-cores': { memory: { guest: '64Mi' }, cpu: { cores: 2147483647, sockets: 2147483647, threads: 2147483647 } },
  'dedicated-cores': {
    memory: { guest: '64Mi' },
    cpu: { cores: 2147483647, sockets: 2147483647, dedicatedCpuPlacement: true },
  },
  'other-resources': { memory: { guest: '64Mi' }, resources: { requests: { 'ephemeral-storage': BEYOND } } },
};

for (const [name, domain] of Object.entries(MACHINES)) {
  test(`a machine with ${name} that no node has is ErrorUnschedulable, and its Pod pending`, async () => {
    await cluster.client.create(VIRTUAL_MACHINES, {
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachine',
      metadata: { name, namespace: 'default' },
      spec: { runStrategy: 'Always', template: { spec: { domain: { devices: {}, ...domain } } } },
    } as unknown as VirtualMachine);
    let last: unknown;
    await eventually(`${name} is unschedulable`, async () => {
      const { status } = await cluster.client.get(VIRTUAL_MACHINES, { namespace: 'default', name });
      last = status;
      return status?.printableStatus === 'ErrorUnschedulable' || undefined;
    }).catch((error: Error) => {
      throw new Error(`${error.message}: ${JSON.stringify(last)}`);
    });
    const { items } = await cluster.client.list(PODS, {
      namespace: 'default',
      labelSelector: `vmi.kubevirt.io/id=${name}`,
    });
    assert.deepEqual(
      items.map(({ status }) => status?.phase),
      ['Pending'],
    );
    const reported = items[0]?.status?.conditions?.find(({ type }) => type === 'PodScheduled');
    assert.equal(reported?.reason, 'Unschedulable');
  });
}

// S-435: An amount that no node has leaves the Pod Pending and the machine `ErrorUnschedulable`; no controller, quota
//   or agent fails on it.
test('a quota counts such amounts, and a Pod of any shape with them waits', async () => {
  const hard = { 'requests.memory': BEYOND, 'requests.cpu': BEYOND, 'requests.ephemeral-storage': BEYOND, pods: '1Ei' };
  await cluster.client.create(RESOURCE_QUOTAS, {
    apiVersion: 'v1',
    kind: 'ResourceQuota',
    metadata: { name: 'all', namespace: 'default' },
    spec: { hard },
  });
  const requests = { memory: '1Ei', cpu: '1e30', 'ephemeral-storage': '9Ei' };
  await cluster.client.create(PODS, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'plain', namespace: 'default' },
    spec: {
      containers: [{ name: 'c', image: 'i', resources: { requests } }],
      initContainers: [{ name: 'i', image: 'i', resources: { requests } }],
    },
  } as unknown as Pod);
  await eventually('the Pod is unschedulable', async () => {
    const { status } = await cluster.client.get(PODS, { namespace: 'default', name: 'plain' });
    return status?.conditions?.some(({ reason }) => reason === 'Unschedulable') || undefined;
  });
});
