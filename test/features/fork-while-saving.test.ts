/** The machines of a fork are there before the memory that they go on from; when that does not come, they go again. */
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { conflict } from '../../packages/apimachinery/src/meta/status.ts';
import { NODES } from '../../packages/apimachinery/src/types/resource-types.ts';
import {
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINE_SNAPSHOTS,
  VIRTUAL_MACHINES,
} from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { createDeferred, type Deferred } from '../../packages/runtime/src/signal/deferred.ts';
import { eventually } from '../testkit/eventually.ts';
import { type FakeCluster, startFakeCluster } from '../testkit/fake-cluster.ts';
import { playMemory } from '../testkit/play-memory.ts';

const namespace = 'default';
const agent = playMemory();
/** The agent answers a call to save when this is resolved, and refuses it when it is rejected. */
let saving: Deferred<void>;
let cluster: FakeCluster;

before(async () => {
  cluster = await startFakeCluster({
    nodes: ['node-1'],
    memory: async (node, path, call, options) => {
      const saved = path === '/memory/v1/save' ? saving.promise : undefined;
      await saved;
      return agent.askAgent(node, path, call, options);
    },
  });
  await cluster.client.create(VIRTUAL_MACHINES, {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name: 'source', namespace },
    spec: { runStrategy: 'Always', template: { spec: { domain: { devices: {}, memory: { guest: '64Mi' } } } } },
  });
  await eventually('the source runs', async () => {
    const vmi = await cluster.client.get(VIRTUAL_MACHINE_INSTANCES, { namespace, name: 'source' });
    return vmi.status?.phase === 'Running' ? vmi : undefined;
  });
});
beforeEach(() => {
  saving = createDeferred();
});
after(async () => {
  await cluster.stop();
  assert.deepEqual(cluster.errors, []);
});

/** Guests of nodes that only pretend wait for no memory: while this is set, none starts. */
const holdGuests = (unschedulable: boolean): Promise<unknown> =>
  cluster.client.patch(NODES, { namespace: '', name: 'node-1' }, { type: 'merge', body: { spec: { unschedulable } } });
const ask = (into: string): Promise<unknown> =>
  cluster.client.create(VIRTUAL_MACHINE_SNAPSHOTS, {
    apiVersion: 'snapshot.kubevirt.io/v1beta1',
    kind: 'VirtualMachineSnapshot',
    metadata: {
      name: `into-${into.replace(',', '-')}`,
      namespace,
      annotations: { 'coracle.dev/include-memory': 'true', 'coracle.dev/fork-into': into },
    },
    spec: { source: { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: 'source' } },
  });
const machines = async (): Promise<string[]> =>
  (await cluster.client.list(VIRTUAL_MACHINES, { namespace })).items.map(({ metadata }) => metadata.name ?? '').sort();
const become = (what: string, names: readonly string[]): Promise<unknown> =>
  eventually(what, async () => ((await machines()).join() === names.join() ? true : undefined));
const snapshotsAreGone = (): Promise<unknown> =>
  eventually('the request is gone', async () => {
    const { items } = await cluster.client.list(VIRTUAL_MACHINE_SNAPSHOTS, { namespace });
    return items.length === 0 ? true : undefined;
  });

// S-1010: The machines of a fork are made while the memory of their source is being saved. When it cannot be saved, or
//   the request is deleted before they run, they go with it, and nothing of them is left.
test('machines are made while memory is being saved, and run when it is', async () => {
  await ask('a-1,a-2');
  await become('both are there', ['a-1', 'a-2', 'source']);
  assert.equal(agent.states.size, 0, 'nothing is saved yet');
  saving.resolve();
  await snapshotsAreGone();
  for (const name of ['a-1', 'a-2']) {
    const { metadata } = await cluster.client.get(VIRTUAL_MACHINES, { namespace, name });
    assert.equal(metadata.annotations?.['coracle.dev/resume-from'], undefined, `${name} has gone on`);
    await cluster.client.delete(VIRTUAL_MACHINES, { namespace, name });
  }
  assert.equal(agent.states.size, 0, 'the memory goes with the request');
  assert.equal((await cluster.events('source')).filter((event) => event.startsWith('Normal Forked')).length, 2);
  await become('both are gone', ['source']);
});

// S-1010
test('machines go again when the memory cannot be saved', async () => {
  await holdGuests(true);
  await ask('b-1');
  await become('it is there', ['b-1', 'source']);
  saving.reject(conflict({ group: 'kubevirt.io', resource: 'virtualmachineinstances' }, 'source', 'no room'));
  await snapshotsAreGone();
  await become('it is gone', ['source']);
  const failed = (await cluster.events('source')).filter((event) => event.startsWith('Warning ForkFailed'));
  assert.match(failed.join(), /source is not forked: .*no room/);
  await holdGuests(false);
});

// S-1010
test('machines that wait for their memory go with a request that is deleted', async () => {
  await holdGuests(true);
  await ask('c-1');
  await become('it is there', ['c-1', 'source']);
  await cluster.client.delete(VIRTUAL_MACHINE_SNAPSHOTS, { namespace, name: 'into-c-1' });
  saving.resolve();
  await snapshotsAreGone();
  await become('it is gone', ['source']);
  assert.equal(agent.states.size, 0);
  await holdGuests(false);
});
