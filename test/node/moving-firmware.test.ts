/** A guest that moves while it runs takes along who it is: UUID, serial number, and the state of its TPM. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { PERSISTENT_VOLUME_CLAIMS } from '../../packages/apimachinery/src/types/resource-types.ts';
import type { VirtualMachineInstance } from '../../packages/kubevirt/src/kinds/kinds.ts';
import { findTpm } from '../../packages/node-agent/src/tpm/swtpm.ts';
import { isRunning } from '../../packages/runtime/src/process/identity.ts';
import { eventually } from '../testkit/eventually.ts';
import { whyNoFirmware } from '../testkit/tiny-guest.ts';
import { kernelSpec, NAMESPACE } from './board.ts';
import { inGuest } from './in-guest.ts';
import { heartbeat, type MigrationBoard, startMigrationBoard } from './migration-board.ts';
import { type MovingGuests, movingGuests } from './moving-guests.ts';
import { NV_DEFINE, NV_READ, NV_WRITE, nvData, tpmCommand } from './tpm-commands.ts';

const skip = whyNoFirmware() ?? false;

let board: MigrationBoard;
let guests: MovingGuests;
before(async () => {
  if (skip) return;
  board = await startMigrationBoard();
  guests = movingGuests(board);
});
after(() => board?.close());

const UUID = '5d307ca9-b3ef-428c-8861-06e72d69f223';
const ask = (vmi: VirtualMachineInstance, command: string): Promise<string> =>
  inGuest({ connect: () => board.console(vmi) }, '', command);
const whoAmI = 'cat /sys/class/dmi/id/product_uuid /sys/class/dmi/id/product_serial';

// S-635: A guest that moves while it runs keeps its UUID, its serial number and the state of its TPM; a state that came
//   with a migration counts only once the guest is there for good.
test('a guest that moves keeps its UUID, its serial number and the state of its TPM', {
  skip,
  timeout: 600_000,
}, async () => {
  const spec = kernelSpec() as { domain: { devices: object; firmware: object } };
  const devices = { ...spec.domain.devices, tpm: { persistent: true } };
  const firmware = { ...spec.domain.firmware, uuid: UUID, serial: 'its-own-serial' };
  await board.createVmi('trusted', { ...spec, domain: { ...spec.domain, devices, firmware } });
  const vmi = await guests.running('trusted');
  const migratable = vmi.status?.conditions?.find(({ type }) => type === 'LiveMigratable');
  assert.equal(migratable?.status, 'True', JSON.stringify(migratable));
  const beats = await heartbeat(vmi);
  await ask(vmi, `${tpmCommand(NV_DEFINE)}; ${tpmCommand(NV_WRITE)}`);
  const directoryOn = (node: string): string => join(board.directory, node, 'vms', vmi.metadata.uid ?? '');

  const there = await board.hand('trusted');
  const source = await findTpm(directoryOn(there.source));
  assert.ok(source);
  const moved = await guests.movedTo('trusted', there, beats);
  const said = await ask(moved, `${whoAmI}; ${tpmCommand(NV_READ)}`);
  assert.match(said, new RegExp(UUID, 'i'));
  assert.match(said, /its-own-serial/);
  assert.ok(said.includes(nvData), 'what is stored in the TPM has come along');
  assert.ok(await findTpm(directoryOn(there.target)));
  await eventually('the TPM of the source has ended', async () => !(await isRunning(source)));

  const { items } = await board.client.list(PERSISTENT_VOLUME_CLAIMS, { namespace: NAMESPACE });
  assert.deepEqual(
    items.map(({ metadata, spec }) => [metadata.labels?.['persistent-state-for'], spec?.accessModes]),
    [['trusted', ['ReadWriteMany']]],
    'one claim for both',
  );
  const pointer = join(board.directory, 'claims', items[0]?.metadata.uid ?? '', 'files/tpm.json');
  assert.deepEqual(JSON.parse(await readFile(pointer, 'utf8')), { version: 1, directory: `tpm-${there.uid}` });
});
