/** Rows of docs/identity.md, each read inside a real guest; those of older machines are in identity.test.ts. */
// test:full: many guests, one after the other.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINE_SNAPSHOTS,
  VIRTUAL_MACHINES,
  type VirtualMachineSnapshot,
} from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { legacyFirmwareUuid } from '../../packages/kubevirt/src/rules/identity/firmware-identity.ts';
import { eventually } from '../testkit/eventually.ts';
import { NAMESPACE } from './board.ts';
import {
  board,
  createVm,
  firmwareOf,
  guest,
  hasUuid,
  keyOf,
  patch,
  restart,
  runs,
  specWith,
  storeAsOlderServer,
  useIdentityBoard,
  vm,
} from './identity-board.ts';

useIdentityBoard();

// S-619
test('a new machine: what is written in it is what its guest sees, through restart, edit and another UUID', {
  timeout: 600_000,
}, async () => {
  const made = firmwareOf(await createVm('web', 'Always'));
  await runs('web');
  const seen = await guest('web');
  assert.deepEqual(seen, { uuid: made.uuid, serial: made.serial });

  // A manifest without identity, as a user keeps it, takes nothing away.
  const stored = await vm('web');
  const { uuid: _, serial: __, ...firmware } = firmwareOf(stored);
  stored.spec.template.spec!.domain.firmware = firmware;
  await board.client.update(VIRTUAL_MACHINES, stored);
  await restart('web');
  assert.deepEqual(await guest('web'), seen);

  const uuid = '5D307CA9-B3EF-428C-8861-06E72D69F223';
  await patch('web', { template: { spec: { domain: { firmware: { uuid, serial: 'SER-1' } } } } });
  await eventually('a restart is asked for', async () =>
    ((await vm('web')).status?.conditions ?? []).some(({ type }) => type === 'RestartRequired'),
  );
  assert.deepEqual(await guest('web'), seen, 'until then it is who it was');
  await restart('web');
  assert.deepEqual(await guest('web'), { uuid: uuid.toLowerCase(), serial: 'SER-1' });
  await patch('web', { runStrategy: 'Halted' });
});

// S-619
test('who is given a UUID and a serial sees them from the first boot, with and without a machine', {
  timeout: 600_000,
}, async () => {
  const given = { uuid: '6D307CA9-B3EF-428C-8861-06E72D69F223', serial: 'SER-7' };
  const seen = { uuid: given.uuid.toLowerCase(), serial: given.serial };
  await createVm('named', 'Always', given);
  await runs('named');
  assert.deepEqual(await guest('named'), seen);
  await patch('named', { runStrategy: 'Halted' });
  const other = { uuid: '7d307ca9-b3ef-428c-8861-06e72d69f223', serial: 'SER-8' };
  await board.createVmi('named-alone', specWith(other));
  await runs('named-alone');
  assert.deepEqual(await guest('named-alone'), other);
  await board.client.delete(VIRTUAL_MACHINE_INSTANCES, keyOf('named-alone'));
});

// S-619
test('an instance without a machine has a UUID of its own and no serial', { timeout: 600_000 }, async () => {
  const { spec } = await board.createVmi('alone', specWith());
  await runs('alone');
  const seen = await guest('alone');
  assert.equal(seen.uuid, spec.domain.firmware?.uuid);
  assert.match(seen.uuid, /^.{14}4/, 'random');
  assert.doesNotMatch(seen.serial, /[0-9a-f]{8}-/);
  await board.client.delete(VIRTUAL_MACHINE_INSTANCES, keyOf('alone'));
});

// S-619
test('a machine of an older server that was stopped wakes up as who it was', { timeout: 600_000 }, async () => {
  await createVm('slept', 'Halted');
  await storeAsOlderServer('slept');
  await hasUuid('slept');
  await patch('slept', { runStrategy: 'Always' });
  await runs('slept');
  const seen = await guest('slept');
  assert.equal(seen.uuid, legacyFirmwareUuid('slept'));
  // It had none, and is given none.
  assert.equal(firmwareOf(await vm('slept')).serial ?? '', '');
  assert.doesNotMatch(seen.serial, /[0-9a-f]{8}-/);
  await patch('slept', { runStrategy: 'Halted' });
});

// S-619
test('a fork is somebody new: its guest sees it when it has booted, as its memory is a copy until then', {
  timeout: 600_000,
}, async () => {
  await createVm('source', 'Always');
  await runs('source');
  const seen = await guest('source');
  await board.client.create(VIRTUAL_MACHINE_SNAPSHOTS, {
    apiVersion: 'snapshot.kubevirt.io/v1beta1',
    kind: 'VirtualMachineSnapshot',
    metadata: {
      name: 'forking',
      namespace: NAMESPACE,
      annotations: { 'coracle.dev/include-memory': 'true', 'coracle.dev/fork-into': 'fork' },
    },
    spec: { source: { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: 'source' } },
  } as unknown as VirtualMachineSnapshot);
  await runs('fork');
  const { uuid, serial } = firmwareOf(await vm('fork'));
  assert.match(uuid ?? '', /^.{14}4/, 'random');
  assert.deepEqual(await guest('fork'), seen, 'its memory is a copy');
  await restart('fork');
  assert.deepEqual(await guest('fork'), { uuid, serial });
  assert.notEqual(serial, seen.serial);
  assert.deepEqual(await guest('source'), seen);
});
