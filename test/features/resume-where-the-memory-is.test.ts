/** A guest that goes on from saved memory is placed where that is; when nobody has it any more, its instance says so. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { NODES, PODS } from '../../packages/apimachinery/src/types/resource-types.ts';
import type { Pod } from '../../packages/apimachinery/src/types/types.ts';
import {
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINE_SNAPSHOTS,
  VIRTUAL_MACHINES,
  type VirtualMachineInstance,
} from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { eventually } from '../testkit/eventually.ts';
import { type FakeCluster, startFakeCluster } from '../testkit/fake-cluster.ts';

const POOL = 'topology.coracle.dev/pool';
const namespace = 'default';
let cluster: FakeCluster;
before(async () => {
  cluster = await startFakeCluster();
  for (const name of ['node-1', 'node-2', 'node-3']) await label(name, `pool-of-${name}`);
});
after(async () => {
  await cluster.stop();
  assert.deepEqual(cluster.errors, []);
});

const label = (name: string, pool: string): Promise<unknown> =>
  cluster.client.patch(
    NODES,
    { namespace: '', name },
    { type: 'merge', body: { metadata: { labels: { [POOL]: pool } } } },
  );
/** A snapshot whose memory a node has; resolves with its UID. */
async function saved(name: string, node: string): Promise<string> {
  await cluster.client.create(VIRTUAL_MACHINES, {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name, namespace },
    spec: { runStrategy: 'Halted', template: { spec: { domain: { devices: {}, memory: { guest: '64Mi' } } } } },
  });
  const { metadata } = await cluster.client.create(VIRTUAL_MACHINE_SNAPSHOTS, {
    apiVersion: 'snapshot.kubevirt.io/v1beta1',
    kind: 'VirtualMachineSnapshot',
    metadata: {
      name,
      namespace,
      annotations: {
        'coracle.dev/include-memory': 'true',
        'coracle.dev/memory': 'Saved',
        'coracle.dev/memory-node': node,
        'coracle.dev/memory-pool': `pool-of-${node}`,
      },
    },
    spec: { source: { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name } },
  });
  return metadata.uid ?? '';
}
const make = (name: string, state: string, more: object = {}): Promise<unknown> =>
  cluster.client.create(VIRTUAL_MACHINE_INSTANCES, {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { name, namespace, annotations: { 'coracle.dev/resume-from': state, ...more } },
    spec: { evictionStrategy: 'LiveMigrate', domain: { devices: {}, memory: { guest: '64Mi' } } },
  });
const runs = (name: string): Promise<VirtualMachineInstance> =>
  cluster.untilVmi(name, 'runs', ({ status }) => status?.phase === 'Running');
const launchers = async (name: string): Promise<Pod[]> =>
  (await cluster.client.list(PODS, { namespace })).items.filter(({ metadata }) =>
    metadata.ownerReferences?.some((owner) => owner.name === name),
  );

// S-685: A guest that goes on from saved memory is placed on a node that has it, and may migrate from there; while none
//   has it the instance waits with condition `Synchronized` False, reason `FailedResume`, which names the node, and
//   goes on when one comes. With `coracle.dev/resume-fallback: Boot` it goes there if it can.
test('guests go where their memory is, and may migrate from there', async () => {
  for (const node of ['node-3', 'node-2']) {
    const state = await saved(`saved-on-${node}`, node);
    for (const nth of [1, 2]) {
      await make(`${node}-${nth}`, state);
      assert.equal((await runs(`${node}-${nth}`)).status?.nodeName, node);
    }
  }
  await cluster.untilPhase(await cluster.migrate('node-2-1'), 'Succeeded');
  await cluster.untilVmi('node-2-1', 'is elsewhere', ({ status }) => status?.nodeName !== 'node-2');
});

// S-685
test('while no node has the memory the instance waits and says so; when one comes it goes on', async () => {
  const state = await saved('lost', 'node-9');
  await make('waits', state);
  const isReported = ({ status }: VirtualMachineInstance): boolean =>
    status?.conditions?.some(({ type, reason }) => type === 'Synchronized' && reason === 'FailedResume') ?? false;
  const reported = await cluster.untilVmi('waits', 'says so', isReported);
  const condition = reported.status?.conditions?.find(({ type }) => type === 'Synchronized');
  assert.equal(condition?.status, 'False');
  assert.match(condition?.message ?? '', /^the guest is not resumed: node node-9, which has its saved memory, is gone/);
  assert.deepEqual(await launchers('waits'), []);
  await eventually('the event', async () =>
    (await cluster.events('waits')).some((event) => event.startsWith('Warning FailedResume')),
  );

  await make('boots', state, { 'coracle.dev/resume-fallback': 'Boot' });
  await runs('boots');

  await label('node-1', 'pool-of-node-9');
  assert.equal((await runs('waits')).status?.nodeName, 'node-1');
});

// S-685
test('a guest that may boot instead had better go where its memory is', async () => {
  await make('prefers', await saved('preferred', 'node-3'), { 'coracle.dev/resume-fallback': 'Boot' });
  assert.equal((await runs('prefers')).status?.nodeName, 'node-3');
  const [pod] = await launchers('prefers');
  assert.equal(pod?.spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution, undefined);
  assert.equal(pod?.spec.affinity?.nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution?.length, 1);
});
