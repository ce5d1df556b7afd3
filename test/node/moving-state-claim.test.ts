/**
 * Firmware state in a claim that one node alone may open: a guest that moves takes it to a second claim, which takes the
 * place of the first; a migration that fails leaves the first one in use.
 */
// test:full: many guests, one after the other.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PERSISTENT_VOLUME_CLAIMS } from '../../packages/apimachinery/src/types/resource-types.ts';
import {
  KUBEVIRTS,
  VIRTUAL_MACHINE_INSTANCE_MIGRATIONS,
  VIRTUAL_MACHINES,
  type VirtualMachineInstanceMigration,
} from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { eventually } from '../testkit/eventually.ts';
import { whyNoFirmware } from '../testkit/tiny-guest.ts';
import { kernelSpec, NAMESPACE } from './board.ts';
import { board, keyOf, migrate, restart, runs, useIdentityBoard } from './identity-board.ts';
import { inGuest } from './in-guest.ts';
import { NV_DEFINE, NV_READ, NV_WRITE, NV_WRITE_OTHER, nvData, otherData, tpmCommand } from './tpm-commands.ts';

const skip = whyNoFirmware() ?? false;
if (!skip) useIdentityBoard();

const ask = (command: string): Promise<string> =>
  inGuest({ connect: async () => board.console(await board.vmi('sealed')) }, '', command);
const claims = async () =>
  (await board.client.list(PERSISTENT_VOLUME_CLAIMS, { namespace: NAMESPACE })).items.map(({ metadata }) => ({
    name: metadata.name,
    state: metadata.labels?.['persistent-state-for'],
    migration: metadata.labels?.['kubevirt.io/migrationName'],
  }));

// S-680: Firmware state in a claim that one node alone may open moves to a second claim, which takes its place; where
//   the migration fails the first one stays. The migration state names both.
test('a TPM in a claim of one node moves to a second claim, which takes its place; a failed migration leaves none', {
  skip,
  timeout: 600_000,
}, async () => {
  // As it is on storage that one node alone may open.
  const labels = { 'persistent-state-for': 'sealed' };
  await board.client.create(PERSISTENT_VOLUME_CLAIMS, {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name: 'persistent-state-for-sealed-1', namespace: NAMESPACE, labels },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '10Mi' } }, storageClassName: 'local' },
  });
  const spec = kernelSpec({ terminationGracePeriodSeconds: 0 }) as { domain: { devices: object } };
  const devices = { ...spec.domain.devices, tpm: { persistent: true } };
  await board.client.create(VIRTUAL_MACHINES, {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: keyOf('sealed'),
    spec: { runStrategy: 'Always', template: { metadata: {}, spec: { ...spec, domain: { ...spec.domain, devices } } } },
  });
  await runs('sealed');
  await ask(`${tpmCommand(NV_DEFINE)}; ${tpmCommand(NV_WRITE)}`);

  // Slow enough to be called off in the middle.
  await board.client.patch(
    KUBEVIRTS,
    { namespace: 'kubevirt', name: 'kubevirt' },
    { type: 'merge', body: { spec: { configuration: { migrations: { bandwidthPerMigration: '4Mi' } } } } },
  );
  const { metadata } = await board.client.create(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstanceMigration',
    metadata: { name: 'called-off', namespace: NAMESPACE },
    spec: { vmiName: 'sealed' },
  } as unknown as VirtualMachineInstanceMigration);
  await board.until('sealed', 'under way', ({ status }) => status?.migrationState?.startTimestamp !== undefined);
  const during = await claims();
  assert.equal(during.find(({ migration }) => migration === metadata.name)?.state, undefined, JSON.stringify(during));
  assert.equal(during.length, 2);
  const { migrationState } = (await board.vmi('sealed')).status ?? {};
  assert.equal(migrationState?.sourcePersistentStatePVCName, 'persistent-state-for-sealed-1');
  assert.equal(
    migrationState?.targetPersistentStatePVCName,
    during.find(({ migration }) => migration === metadata.name)?.name,
  );
  await board.client.delete(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, keyOf('called-off'));
  await eventually('one claim', async () => (await claims()).length === 1);
  assert.deepEqual(await claims(), [{ name: 'persistent-state-for-sealed-1', state: 'sealed', migration: undefined }]);
  assert.ok((await ask(tpmCommand(NV_READ))).includes(nvData), 'the guest has its TPM where it stayed');
  await board.client.patch(
    KUBEVIRTS,
    { namespace: 'kubevirt', name: 'kubevirt' },
    { type: 'merge', body: { spec: { configuration: { migrations: null } } } },
  );

  await migrate('sealed');
  assert.ok((await ask(tpmCommand(NV_READ))).includes(nvData), 'it has come along');
  await eventually('one claim', async () => (await claims()).length === 1);
  const [left] = await claims();
  assert.equal(left?.state, 'sealed');
  assert.equal(left?.migration, undefined);
  assert.notEqual(left?.name, 'persistent-state-for-sealed-1');
  await ask(tpmCommand(NV_WRITE_OTHER));
  await restart('sealed');
  assert.ok((await ask(tpmCommand(NV_READ))).includes(otherData), 'what was written after the move is there');
});
