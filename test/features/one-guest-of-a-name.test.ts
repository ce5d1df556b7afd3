/** An instance that no admission of ours has seen: its controller holds it until its guest has ended. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import fc from 'fast-check';
import { PODS } from '../../packages/apimachinery/src/types/resource-types.ts';
import type { Pod } from '../../packages/apimachinery/src/types/types.ts';
import { isNotFound } from '../../packages/client/src/api-failure.ts';
import {
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINES,
  type VirtualMachine,
  type VirtualMachineInstance,
} from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { VM_FINALIZER as HELD } from '../../packages/kubevirt/src/rules/machine-defaults/hold-machine.ts';
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

const machine = (name: string, spec: object = { runStrategy: 'Always' }): VirtualMachine =>
  ({
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name, namespace: 'default' },
    spec: { ...spec, template: { spec: { domain: { devices: {}, memory: { guest: '64Mi' } } } } },
  }) as unknown as VirtualMachine;

// S-1560: A machine is held for its controller from its creation: deleted at any moment after that, no instance is left,
//   and the machine is there until its instance has ended. No garbage collector runs here.
test('a machine that is deleted at any moment after its creation leaves no instance behind', async () => {
  const seen = new Set<string>();
  let count = 0;
  const moments = fc.array(fc.integer({ min: 0, max: 60 }), { minLength: 6, maxLength: 6 });
  const deletion = async (turns: number): Promise<void> => {
    const name = `brief-${count++}`;
    await cluster.client.create(VIRTUAL_MACHINES, machine(name));
    for (let turn = 0; turn < turns; turn++) await new Promise((wake) => setImmediate(wake));
    // To look takes time: who deletes at once does not.
    const before = turns === 0 ? 'none yet' : await cluster.vmi(name).catch(() => undefined);
    seen.add(typeof before === 'string' ? before : (before?.status?.phase ?? 'no instance'));
    await cluster.client.delete(VIRTUAL_MACHINES, key(name));
    await eventually(`the machine ${name} is gone`, () =>
      cluster.client
        .get(VIRTUAL_MACHINES, key(name))
        .catch(isNotFound)
        .then((found) => found === true),
    );
    assert.equal(
      await cluster.vmi(name).catch(isNotFound),
      true,
      `the instance of ${name}, deleted after ${turns} turns`,
    );
  };
  await fc.assert(
    fc.asyncProperty(moments, (turns) => Promise.all(turns.map(deletion)).then(() => {})),
    { numRuns: 4, examples: [[[0, 1, 5, 20, 40, 60]]] },
  );
  assert.ok(seen.size > 2, [...seen].join());
});

// S-1561: What holds a machine belongs to no user: server-side apply and its repetition do not own it or take it away,
//   the first write of the controller is its status, and a deletion that orphans leaves the instance running.
test('the finalizer of a machine is not its user’s, and costs no write', async () => {
  const path = '/apis/kubevirt.io/v1/namespaces/default/virtualmachines/applied';
  const apply = (query: string, strategy: string) =>
    cluster.board.send(
      'PATCH',
      `${path}?fieldManager=team${query}`,
      machine('applied', { runStrategy: strategy }),
      'application/apply-patch+yaml',
    );
  const dry = await apply('&dryRun=All', 'Halted');
  assert.deepEqual(dry.json.metadata.finalizers, [HELD]);
  await apply('', 'Halted');
  await eventually(
    'its status',
    async () => (await cluster.board.send('GET', path)).json.status?.printableStatus === 'Stopped',
  );
  const { managedFields } = (await cluster.board.send('GET', path)).json.metadata;
  assert.deepEqual(
    managedFields.map(({ operation, subresource = '' }: Record<string, string>) => `${operation} ${subresource}`),
    ['Apply ', 'Update status'],
  );
  assert.doesNotMatch(JSON.stringify(managedFields), /finalizers|observed-api-version/);
  const again = await apply('', 'Always');
  assert.deepEqual(again.json.metadata.finalizers, [HELD]);
  await cluster.untilVmi('applied', 'runs', ({ status }) => status?.phase === 'Running');
  await cluster.client.delete(VIRTUAL_MACHINES, key('applied'), { propagationPolicy: 'Orphan' });
  const orphaned = await eventually('the controller lets go', async () => {
    const { json } = await cluster.board.send('GET', path);
    return json.metadata.finalizers?.includes(HELD) ? undefined : json;
  });
  assert.deepEqual(orphaned.metadata.finalizers, ['orphan']);
  assert.equal((await cluster.vmi('applied')).metadata.deletionTimestamp, undefined);
});
