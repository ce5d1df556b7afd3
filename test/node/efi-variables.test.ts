/**
 * EFI variables of a real guest, written and read in the UEFI shell, last as long as their machine: over restarts, a
 * live migration, a snapshot and its restore.
 */
// test:full: many guests, one after the other.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VIRTUAL_MACHINES } from '../../packages/kubevirt/src/kinds/kinds.ts';
import { savedMachines } from '../testkit/saved-machines.ts';
import { whyNoFirmware } from '../testkit/tiny-guest.ts';
import { NAMESPACE } from './board.ts';
import { board, keyOf, migrate, patch, restart, runs, useIdentityBoard } from './identity-board.ts';
import { inUefiShell, SHOW_VARIABLE, setVariable, shown } from './uefi-shell.ts';

const skip = whyNoFirmware() ?? false;
if (!skip) useIdentityBoard();

const inShell = (name: string, command: string, isThere = false): Promise<string> =>
  inUefiShell(async () => board.console(await board.vmi(name)), command, { isThere });

// S-634
// S-679: EFI variables that last come along when their guest migrates, are there after restarts of the moved guest, and
//   go back with a restore.
test('EFI variables that shall last move with their guest, are there after a restart, and go back with a restore', {
  skip,
  timeout: 600_000,
}, async () => {
  const words = savedMachines(board.client);
  const firmware = { bootloader: { efi: { persistent: true, secureBoot: false } } };
  const spec = {
    terminationGracePeriodSeconds: 0,
    domain: { devices: { autoattachPodInterface: false }, memory: { guest: '256Mi' }, firmware },
  };
  await board.client.create(VIRTUAL_MACHINES, {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name: 'variables', namespace: NAMESPACE },
    spec: { runStrategy: 'Always', template: { metadata: {}, spec } },
  });
  await runs('variables');
  await inShell('variables', setVariable('kept'));
  await restart('variables');
  assert.match(await inShell('variables', SHOW_VARIABLE), shown('kept'), 'after a restart');

  await migrate('variables');
  assert.match(await inShell('variables', SHOW_VARIABLE, true), shown('kept'), 'on the other node');
  // What is written there counts, and not what the source left.
  await inShell('variables', setVariable('moved'), true);
  await restart('variables');
  assert.match(await inShell('variables', SHOW_VARIABLE), shown('moved'), 'after a restart of the moved guest');

  await words.snapshot('before', 'variables');
  await words.saved('before');
  await inShell('variables', setVariable('later'), true);
  await words.restore('back', 'before', 'variables', { targetReadinessPolicy: 'StopTarget' });
  await words.restored('back');
  await patch('variables', { runStrategy: 'Always' });
  await runs('variables');
  assert.match(await inShell('variables', SHOW_VARIABLE), shown('moved'), 'after the restore');
  await board.client.delete(VIRTUAL_MACHINES, keyOf('variables'));
});
