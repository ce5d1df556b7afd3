import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import {
  VIRTUAL_MACHINE_INSTANCE_MIGRATIONS,
  type VirtualMachineInstanceMigration,
} from '../../src/api/kinds/kubevirt/kubevirt.ts';
import { eventually, kernelSpec, NAMESPACE } from './board.ts';
import { heartbeat, type MigrationBoard, startMigrationBoard } from './migration-board.ts';

let board: MigrationBoard;
before(async () => {
  board = await startMigrationBoard({ controller: true });
});
after(() => board?.close());

test('a VirtualMachineInstanceMigration moves a real guest, from Pending to Succeeded', {
  timeout: 240_000,
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

test('a node that cannot prove its name sends no guest and takes none, and says why', {
  timeout: 240_000,
}, async () => {
  const why = 'certificate request x was refused: because';
  const told = `the agent of this node has no certificate to prove its name to other nodes with: ${why}`;
  const judged = (status: string) =>
    board.until('mover', `LiveMigratable ${status}`, (vmi) =>
      (vmi.status?.conditions ?? []).some((one) => one.type === 'LiveMigratable' && one.status === status),
    );
  const at = (await judged('True')).status?.nodeName ?? '';
  const other = board.nodes.find((node) => node !== at) ?? '';
  const move = (name: string): Promise<VirtualMachineInstanceMigration> =>
    board.client.create(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, {
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachineInstanceMigration',
      metadata: { name, namespace: NAMESPACE },
      spec: { vmiName: 'mover' },
    } as unknown as VirtualMachineInstanceMigration);

  board.obstructPeer(at, why);
  const stuck = await judged('False');
  const condition = stuck.status?.conditions?.find(({ type }) => type === 'LiveMigratable');
  assert.deepEqual([condition?.reason, condition?.message], ['NodeNotLiveMigratable', told]);
  await assert.rejects(move('refused'), new RegExp(why));
  board.obstructPeer(at, undefined);
  await judged('True');

  const failed = (name: string): Promise<void> =>
    eventually(`${name} has failed`, async () => {
      const key = { namespace: NAMESPACE, name };
      return (await board.client.get(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, key)).status?.phase === 'Failed';
    });
  await move('unsent');
  board.obstructPeer(at, why);
  await failed('unsent');
  assert.equal((await board.vmi('mover')).status?.migrationState?.failureReason, told);
  board.obstructPeer(at, undefined);
  await judged('True');
  for (const { metadata, status } of await board.launchers('mover'))
    if (status?.phase === 'Failed') await board.removePod(metadata.name ?? '');

  board.obstructPeer(other, why);
  await move('untaken');
  await failed('untaken');
  const ended = (await board.launchers('mover')).find(({ status }) => status?.phase === 'Failed');
  assert.deepEqual([ended?.status?.reason, ended?.status?.message], ['MigrationNotSupported', told]);
  assert.equal((await board.vmi('mover')).status?.nodeName, at);
  board.obstructPeer(other, undefined);
});
