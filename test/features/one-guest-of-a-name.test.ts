/** An instance that no admission of ours has seen: its controller holds it until its guest has ended. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { PODS } from '../../packages/apimachinery/src/types/resource-types.ts';
import type { Pod } from '../../packages/apimachinery/src/types/types.ts';
import { isNotFound } from '../../packages/client/src/api-failure.ts';
import { VIRTUAL_MACHINE_INSTANCES, type VirtualMachineInstance } from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { eventually } from '../testkit/eventually.ts';
import { type FakeCluster, startFakeCluster } from '../testkit/fake-cluster.ts';

let cluster: FakeCluster;
before(async () => {
  cluster = await startFakeCluster({ nodes: ['node-1', 'node-2'] });
});
after(() => cluster.stop());

const key = (name: string) => ({ namespace: 'default', name });
const FINALIZER = 'kubevirt.io/foregroundDeleteVirtualMachine';

const setFinalizers = (name: string, finalizers: readonly string[]): Promise<VirtualMachineInstance> =>
  cluster.client.patch(VIRTUAL_MACHINE_INSTANCES, key(name), { type: 'merge', body: { metadata: { finalizers } } });

/** Creates an instance as a server without our admission would store it. */
async function createUnheld(name: string): Promise<void> {
  await cluster.restart(async () => {
    await cluster.client.create(VIRTUAL_MACHINE_INSTANCES, {
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachineInstance',
      metadata: { name, namespace: 'default' },
      spec: { domain: { devices: {}, memory: { guest: '64Mi' } } },
    } as unknown as VirtualMachineInstance);
    assert.equal((await setFinalizers(name, [])).metadata.finalizers, undefined);
  });
}

/** Launchers of the name whose guest may run. */
async function launchers(name: string): Promise<Pod[]> {
  const { items } = await cluster.client.list(PODS, { namespace: 'default' });
  return items.filter(
    ({ metadata, status }) =>
      metadata.ownerReferences?.some((owner) => owner.name === name) &&
      status?.phase !== 'Succeeded' &&
      status?.phase !== 'Failed',
  );
}

const hold = (): void => {
  for (const node of cluster.nodes.values()) node.holds.add('end');
};
const release = (): void => {
  for (const node of cluster.nodes.values()) {
    node.holds.delete('end');
    node.nudge();
  }
};
const settle = (): Promise<void> => new Promise((wake) => setTimeout(wake, 300));

// S-364: The controller of instances holds each of them by its finalizer before it makes a launcher Pod, whoever
//   admitted it, and makes none while a launcher of an earlier instance of the name has not ended.
test('an instance gets its finalizer from its controller: it is not gone before its guest', async () => {
  await createUnheld('plain');
  const first = await cluster.untilVmi('plain', 'runs', ({ status }) => status?.phase === 'Running');
  assert.deepEqual(first.metadata.finalizers, [FINALIZER]);
  hold();
  await cluster.client.delete(VIRTUAL_MACHINE_INSTANCES, key('plain'));
  await settle();
  const still = await cluster.vmi('plain');
  assert.equal(still.metadata.uid, first.metadata.uid, 'it waits for its guest');
  assert.notEqual(still.metadata.deletionTimestamp, undefined);
  assert.equal((await launchers('plain')).length, 1);
  release();
  await eventually('it is gone', async () => (await cluster.vmi('plain').catch(isNotFound)) === true || undefined);
  assert.deepEqual(await launchers('plain'), []);
});

// S-364
test('an instance whose namesake was let go by force waits until the launcher of that one has ended', async () => {
  await createUnheld('twice');
  await cluster.untilVmi('twice', 'runs', ({ status }) => status?.phase === 'Running');
  hold();
  await cluster.client.delete(VIRTUAL_MACHINE_INSTANCES, key('twice'));
  // Before its instance is gone: there is no garbage collector here.
  await eventually('the end of its launcher is requested', async () =>
    (await launchers('twice')).every(({ metadata }) => metadata.deletionTimestamp !== undefined),
  );
  await setFinalizers('twice', []);
  await createUnheld('twice');
  const [old] = await launchers('twice');
  await settle();
  assert.deepEqual(
    (await launchers('twice')).map(({ metadata }) => metadata.name),
    [old!.metadata.name],
  );
  release();
  await cluster.untilVmi('twice', 'runs', ({ status }) => status?.phase === 'Running');
  assert.equal((await launchers('twice')).length, 1);
});
