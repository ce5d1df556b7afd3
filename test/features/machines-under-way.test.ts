/** Machines that are changed, let go and made again while something else is under way with them. */
import { after, before, test } from 'node:test';
import { isNotFound } from '../../packages/client/src/api-failure.ts';
import { VIRTUAL_MACHINES, type VirtualMachine } from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { eventually } from '../testkit/eventually.ts';
import { type FakeCluster, startFakeCluster } from '../testkit/fake-cluster.ts';

let cluster: FakeCluster;
before(async () => {
  cluster = await startFakeCluster({
    nodes: ['node-1', 'node-2'],
    components: 'vm,vmi,migration,evacuation,scheduler,garbage-collector-controller',
  });
});
after(() => cluster.stop());

const key = (name: string) => ({ namespace: 'default', name });
const create = (name: string, spec: object = { runStrategy: 'Always' }): Promise<VirtualMachine> =>
  cluster.client.create(VIRTUAL_MACHINES, {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name, namespace: 'default' },
    spec: { ...spec, template: { spec: { domain: { devices: {}, memory: { guest: '64Mi' } } } } },
  } as unknown as VirtualMachine);
const runs = (name: string) => cluster.untilVmi(name, 'runs', ({ status }) => status?.phase === 'Running');
const isGone = (name: string) =>
  eventually(`the instance ${name} is gone`, () => cluster.vmi(name).then(() => false, isNotFound));

/** Deletes a machine and takes off all that holds it, as somebody does who has lost patience. */
async function force(name: string): Promise<void> {
  await cluster.client.delete(VIRTUAL_MACHINES, key(name));
  await cluster.client
    .patch(VIRTUAL_MACHINES, key(name), { type: 'merge', body: { metadata: { finalizers: null } } })
    .catch(isNotFound);
  await eventually(`the machine ${name} is gone`, () =>
    cluster.client.get(VIRTUAL_MACHINES, key(name)).then(() => false, isNotFound),
  );
}

// S-1562: An instance whose machine was let go by force goes when its guest has ended, and one of the same name that is
//   made meanwhile starts after that.
test('an instance whose machine was let go by force goes, and the next machine of the name starts', async () => {
  await create('forced');
  await runs('forced');
  await force('forced');
  await isGone('forced');

  await create('again');
  const first = await runs('again');
  for (const node of cluster.nodes.values()) node.holds.add('end');
  await force('again');
  await create('again');
  await eventually('it says what is in the way', async () => {
    const { status } = await cluster.client.get(VIRTUAL_MACHINES, key('again'));
    return status?.conditions?.some(({ message }) => message?.includes('is in the way'));
  });
  for (const node of cluster.nodes.values()) {
    node.holds.delete('end');
    node.nudge();
  }
  await cluster.untilVmi(
    'again',
    'runs anew',
    ({ metadata, status }) => metadata.uid !== first.metadata.uid && status?.phase === 'Running',
  );
});
