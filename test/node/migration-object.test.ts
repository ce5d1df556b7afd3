import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import {
  KUBEVIRTS,
  VIRTUAL_MACHINE_INSTANCE_MIGRATIONS,
  VIRTUAL_MACHINE_INSTANCES,
  type VirtualMachineInstanceMigration,
} from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { eventually } from '../testkit/eventually.ts';
import { kernelSpec, NAMESPACE } from './board.ts';
import { heartbeat, type MigrationBoard, startMigrationBoard } from './migration-board.ts';

let board: MigrationBoard;
before(async () => {
  board = await startMigrationBoard({ controller: true });
});
after(() => board?.close());

// S-194
test('a VirtualMachineInstanceMigration moves a real guest, from Pending to Succeeded', {
  timeout: 600_000,
}, async () => {
  await board.createVmi('mover', kernelSpec());
  const vmi = await board.until('mover', 'running', ({ status }) => status?.phase === 'Running');
  const beats = await heartbeat(vmi);
  const source = vmi.status?.nodeName ?? '';
  await board.client.create(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstanceMigration',
    metadata: { name: 'move', namespace: NAMESPACE },
    spec: { vmiName: 'mover' },
  } as unknown as VirtualMachineInstanceMigration);
  let last: VirtualMachineInstanceMigration | undefined;
  await eventually('the migration is over', async () => {
    last = await board.client.get(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, { namespace: NAMESPACE, name: 'move' });
    return last.status?.phase === 'Succeeded' || last.status?.phase === 'Failed';
  }).catch(async (error: Error) => {
    throw new Error(
      `${error.message}: ${JSON.stringify(last?.status)} ${JSON.stringify((await board.vmi('mover')).status?.migrationState)}`,
    );
  });
  assert.equal(last?.status?.phase, 'Succeeded', JSON.stringify(last?.status));
  const phases = last?.status?.phaseTransitionTimestamps?.map(({ phase }) => phase);
  assert.deepEqual(
    phases?.filter((phase) => phase === 'TargetReady' || phase === 'Running' || phase === 'Succeeded').at(-1),
    'Succeeded',
  );
  const moved = await board.vmi('mover');
  assert.notEqual(moved.status?.nodeName, source);
  assert.equal(moved.status?.phase, 'Running');
  assert.ok((await heartbeat(moved)) >= beats, 'another boot');
  await eventually('one QEMU is left', async () => (await board.qemus(moved)).size === 1);
  assert.deepEqual([...(await board.qemus(moved)).keys()], [moved.status?.nodeName]);
});

// S-405: The annotations by which KubeVirt's tests make launchers fail or wait act where gate `FunctionalTestHooks` is
//   on, and there alone; a migration that fails keeps the mark of an eviction.
test('a launcher that is to fail fast fails before there is a guest, where the gate is on', async () => {
  const { client } = board;
  const gate = { spec: { configuration: { developerConfiguration: { featureGates: ['FunctionalTestHooks'] } } } };
  await client.patch(KUBEVIRTS, { namespace: 'kubevirt', name: 'kubevirt' }, { type: 'merge', body: gate });
  await eventually('the gate is seen', async () => {
    const name = `fast-${Math.random().toString(36).slice(2, 8)}`;
    await client.create(VIRTUAL_MACHINE_INSTANCES, {
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachineInstance',
      metadata: { name, namespace: NAMESPACE, annotations: { 'kubevirt.io/func-test-virt-launcher-fail-fast': '' } },
      spec: kernelSpec({ terminationGracePeriodSeconds: 0 }),
    });
    const ended = await board.until(name, 'decided', ({ status }) =>
      ['Failed', 'Running'].includes(status?.phase ?? ''),
    );
    await client.delete(VIRTUAL_MACHINE_INSTANCES, { namespace: NAMESPACE, name });
    return ended.status?.phase === 'Failed';
  });
});

// S-286: A node that cannot prove its name sends no guest and takes none, and says why.
test('a node that cannot prove its name sends no guest and takes none, and says why', {
  timeout: 600_000,
}, async () => {
  const why = 'certificate request x was refused: because';
  const reported = `the agent of this node has no certificate to prove its name to other nodes with: ${why}`;
  const decided = (status: string) =>
    board.until('mover', `LiveMigratable ${status}`, (vmi) =>
      (vmi.status?.conditions ?? []).some((one) => one.type === 'LiveMigratable' && one.status === status),
    );
  const at = (await decided('True')).status?.nodeName ?? '';
  const other = board.nodes.find((node) => node !== at) ?? '';
  const move = (name: string): Promise<VirtualMachineInstanceMigration> =>
    board.client.create(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, {
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachineInstanceMigration',
      metadata: { name, namespace: NAMESPACE },
      spec: { vmiName: 'mover' },
    } as unknown as VirtualMachineInstanceMigration);

  board.obstructPeer(at, why);
  const stuck = await decided('False');
  const condition = stuck.status?.conditions?.find(({ type }) => type === 'LiveMigratable');
  assert.deepEqual([condition?.reason, condition?.message], ['NodeNotLiveMigratable', reported]);
  await assert.rejects(move('refused'), new RegExp(why));
  board.obstructPeer(at, undefined);
  await decided('True');

  const failed = (name: string): Promise<unknown> =>
    eventually(`${name} has failed`, async () => {
      const key = { namespace: NAMESPACE, name };
      return (await board.client.get(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, key)).status?.phase === 'Failed';
    });
  await move('unsent');
  board.obstructPeer(at, why);
  await failed('unsent');
  assert.equal((await board.vmi('mover')).status?.migrationState?.failureReason, reported);
  board.obstructPeer(at, undefined);
  await decided('True');
  for (const { metadata, status } of await board.launchers('mover'))
    if (status?.phase === 'Failed') await board.removePod(metadata.name ?? '');

  board.obstructPeer(other, why);
  await move('untaken');
  await failed('untaken');
  const ended = (await board.launchers('mover')).find(({ status }) => status?.phase === 'Failed');
  assert.deepEqual([ended?.status?.reason, ended?.status?.message], ['MigrationNotSupported', reported]);
  assert.equal((await board.vmi('mover')).status?.nodeName, at);
  board.obstructPeer(other, undefined);
});
