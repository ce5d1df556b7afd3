/** Forks of a running machine through the API, on real QEMUs. */
// test:full: many guests, one after the other.
import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { NODES, PERSISTENT_VOLUME_CLAIMS } from '../../packages/apimachinery/src/types/resource-types.ts';
import {
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINE_RESTORES,
  VIRTUAL_MACHINE_SNAPSHOTS,
  VIRTUAL_MACHINES,
  type VirtualMachine,
} from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { eventually } from '../testkit/eventually.ts';
import { type Board, kernelSpec, NAMESPACE, startBoard } from './board.ts';
import { shell } from './shell.ts';

let board: Board;
before(async () => {
  board = await startBoard();
});
after(() => board.close());

const keyOf = (name: string) => ({ namespace: NAMESPACE, name });
const vmOf = (name: string): Promise<VirtualMachine> => board.client.get(VIRTUAL_MACHINES, keyOf(name));
const setStrategy = (name: string, runStrategy: string): Promise<VirtualMachine> =>
  board.client.patch(VIRTUAL_MACHINES, keyOf(name), { type: 'merge', body: { spec: { runStrategy } } });

// S-674: A fork makes machines that go on from the present moment of a running one, each with a UUID of its own; a
//   guest sees its new identity from its next reboot on and learns at once that it was copied. Nothing is left behind.
test('a fork goes on in two machines with identities of their own, and leaves nothing behind', async () => {
  await board.client.create(VIRTUAL_MACHINES, {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name: 'web', namespace: NAMESPACE, labels: { app: 'web' } },
    spec: { runStrategy: 'Always', template: { metadata: { labels: { app: 'web' } }, spec: kernelSpec() } },
  });
  await board.until('web', 'running', (vmi) => vmi.status?.phase === 'Running');
  const line = await shell(board, 'web', true);
  await line.run('(while :; do i=$((i+1)); echo $i >/run/next; mv /run/next /run/count; sleep 0.1; done) &');
  const before = Number(await line.run('until [ -s /run/count ]; do sleep 0.1; done; cat /run/count'));
  // Before the fork, and the source last below: a line that is typed meanwhile may get to the copies in part.
  const inside = await line.run('cat /sys/class/dmi/id/product_uuid /sys/class/net/eth0/address');
  await board.client.create(VIRTUAL_MACHINE_SNAPSHOTS, {
    apiVersion: 'snapshot.kubevirt.io/v1beta1',
    kind: 'VirtualMachineSnapshot',
    metadata: {
      generateName: 'web-fork-',
      namespace: NAMESPACE,
      annotations: { 'coracle.dev/include-memory': 'true', 'coracle.dev/fork-into': 'web-1,web-2' },
    },
    spec: { source: { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: 'web' } },
  });
  const uuids = new Set<string | undefined>();
  for (const name of ['web-1', 'web-2', 'web']) {
    await board.until(name, 'running', (vmi) => vmi.status?.phase === 'Running');
    const vm = await vmOf(name);
    uuids.add(vm.spec.template.spec?.domain.firmware?.uuid);
    const copy = name === 'web' ? line : await shell(board, name, false);
    const count = await copy.run('cat /run/count');
    assert.ok(Number(count) >= before, `${name} says ${JSON.stringify(count)}`);
    // Until its next reboot a guest sees what it saw before, and then learns that it was copied.
    assert.equal(await copy.run('cat /sys/class/dmi/id/product_uuid /sys/class/net/eth0/address'), inside, name);
    const reported = 'virtual machine fork';
    if (name === 'web') assert.equal(await copy.run(`dmesg | grep -c '${reported}'`), '0');
    else await copy.run(`until dmesg | grep -q '${reported}'; do sleep 0.2; done`);
  }
  assert.equal(uuids.size, 3);
  await eventually('the snapshot goes', async () => {
    const { items } = await board.client.list(VIRTUAL_MACHINE_SNAPSHOTS, { namespace: NAMESPACE });
    return items.length === 0;
  });
  assert.deepEqual(await readdir(join(board.directory, 'node/memory')), []);
  const fork = await vmOf('web-1');
  assert.equal(fork.metadata.annotations?.['coracle.dev/resume-from'], undefined);
  assert.equal(fork.metadata.annotations?.['coracle.dev/forked-from'], 'web');
  assert.equal(await board.put('web-1/reset'), 200);
  const rebooted = await shell(board, 'web-1', true);
  const own = fork.spec.template.spec?.domain.firmware?.uuid;
  assert.equal(await rebooted.run('cat /sys/class/dmi/id/product_uuid'), own, 'a reboot shows its own identity');
  for (const name of ['web', 'web-1', 'web-2']) await board.client.delete(VIRTUAL_MACHINES, keyOf(name));
});

// S-677: Volumes of claims are snapshotted in the moment in which the memory is saved, and each fork has claims of its
//   own, which go with it.
test('volumes of claims are of the moment of the memory, and each fork has its own', async () => {
  await board.client.create(PERSISTENT_VOLUME_CLAIMS, {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name: 'data', namespace: NAMESPACE },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '16Mi' } }, storageClassName: 'local' },
  });
  const spec = kernelSpec({
    terminationGracePeriodSeconds: 0,
    volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }],
  }) as { domain: { devices: Record<string, unknown> } };
  spec.domain.devices['disks'] = [{ name: 'data', disk: { bus: 'virtio' } }];
  await board.client.create(VIRTUAL_MACHINES, {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name: 'store', namespace: NAMESPACE },
    spec: { runStrategy: 'Always', template: { spec } },
  });
  const running = (name: string) => board.until(name, 'running', (vmi) => vmi.status?.phase === 'Running');
  await running('store');
  const line = await shell(board, 'store', true);
  await line.run('echo first >/dev/vda; sync; echo second >/run/mark');
  await board.client.create(VIRTUAL_MACHINE_SNAPSHOTS, {
    apiVersion: 'snapshot.kubevirt.io/v1beta1',
    kind: 'VirtualMachineSnapshot',
    metadata: {
      name: 'store-fork',
      namespace: NAMESPACE,
      annotations: { 'coracle.dev/include-memory': 'true', 'coracle.dev/fork-into': 'store-1' },
    },
    spec: { source: { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: 'store' } },
  });
  await running('store-1');
  await line.run('echo third >/dev/vda; sync');
  const copy = await shell(board, 'store-1', false);
  assert.equal(await copy.run('echo 1 >/proc/sys/vm/drop_caches; head -c 5 /dev/vda; cat /run/mark'), 'firstsecond');
  await copy.run('echo fourth >/dev/vda; sync');
  assert.equal(await line.run('echo 1 >/proc/sys/vm/drop_caches; head -c 5 /dev/vda'), 'third');
  for (const name of ['store', 'store-1']) await board.client.delete(VIRTUAL_MACHINES, keyOf(name));
  await eventually('the claim of the fork goes with it', async () => {
    const { items } = await board.client.list(PERSISTENT_VOLUME_CLAIMS, { namespace: NAMESPACE });
    return items.map(({ metadata }) => metadata.name).join() === 'data';
  });
});

// S-673: A snapshot with `coracle.dev/include-memory` has the memory of the running guest and says so; what is restored
//   from it goes on there at its next start, and boots from then on; the state goes with the snapshot.
// S-685
test('a machine that is restored with its memory goes on where it was; from its next restart on it boots', async () => {
  await board.client.create(VIRTUAL_MACHINES, {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name: 'app', namespace: NAMESPACE },
    spec: { runStrategy: 'Always', template: { spec: kernelSpec({ terminationGracePeriodSeconds: 0 }) } },
  });
  const running = (not = '') =>
    board.until('app', 'running', (vmi) => vmi.status?.phase === 'Running' && vmi.metadata.uid !== not);
  const first = await running();
  const before = await shell(board, 'app', true);
  await before.run('echo kept >/run/mark; cat /sys/class/dmi/id/product_uuid >/run/uuid; sleep 1000 & :');
  const spec = { source: { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: 'app' } };
  await board.client.create(VIRTUAL_MACHINE_SNAPSHOTS, {
    apiVersion: 'snapshot.kubevirt.io/v1beta1',
    kind: 'VirtualMachineSnapshot',
    metadata: { name: 'saved', namespace: NAMESPACE, annotations: { 'coracle.dev/include-memory': 'true' } },
    spec,
  });
  await eventually('the snapshot is ready, and says that it has the memory', async () => {
    const { status } = await board.client.get(VIRTUAL_MACHINE_SNAPSHOTS, keyOf('saved'));
    const condition = status?.conditions?.find(({ type }) => type === 'MemoryIncluded');
    return status?.readyToUse === true && condition?.status === 'True';
  });
  const { metadata } = await board.client.get(VIRTUAL_MACHINE_SNAPSHOTS, keyOf('saved'));
  const pool = metadata.annotations?.['coracle.dev/memory-pool'];
  const nodes = await board.client.list(NODES, { labelSelector: `topology.coracle.dev/pool=${pool}` });
  assert.deepEqual(
    nodes.items.map((node) => node.metadata.name),
    [metadata.annotations?.['coracle.dev/memory-node']],
    'which nodes have it',
  );
  await before.run('echo changed >/run/mark');
  // As upstream: until then its running state is not changed.
  await eventually(
    'the snapshot lets go of app',
    async () => (await vmOf('app')).status?.snapshotInProgress === undefined,
  );
  await setStrategy('app', 'Halted');
  await eventually('app stopped', async () => (await vmOf('app')).status?.printableStatus === 'Stopped');
  await board.client.create(VIRTUAL_MACHINE_RESTORES, {
    apiVersion: 'snapshot.kubevirt.io/v1beta1',
    kind: 'VirtualMachineRestore',
    metadata: { name: 'back', namespace: NAMESPACE },
    spec: { target: spec.source, virtualMachineSnapshotName: 'saved' },
  });
  await eventually('restored', async () => {
    return (await board.client.get(VIRTUAL_MACHINE_RESTORES, keyOf('back'))).status?.complete === true;
  });
  await setStrategy('app', 'Always');
  const second = await running(first.metadata.uid);
  const after = await shell(board, 'app', false);
  assert.equal(await after.run('cat /run/mark'), 'kept');
  assert.equal(
    await after.run('cmp /run/uuid /sys/class/dmi/id/product_uuid && pidof sleep >/dev/null && echo same'),
    'same',
  );
  await eventually('the request is gone', async () => {
    return (await vmOf('app')).metadata.annotations?.['coracle.dev/resume-from'] === undefined;
  });

  await board.client.delete(VIRTUAL_MACHINE_INSTANCES, keyOf('app'));
  await running(second.metadata.uid);
  const booted = await shell(board, 'app', true);
  assert.equal(await booted.run('ls /run/mark 2>/dev/null'), '');
  await board.client.delete(VIRTUAL_MACHINE_SNAPSHOTS, keyOf('saved'));
  await eventually('the state goes with its snapshot', async () => {
    return (await readdir(join(board.directory, 'node/memory'))).length === 0;
  });
});
