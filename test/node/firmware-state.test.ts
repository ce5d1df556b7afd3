/** The TPM and the EFI variables of real guests: what is there, what lasts, and what must not. */
// test:full: many guests, one after the other.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { PERSISTENT_VOLUME_CLAIMS } from '../../packages/apimachinery/src/types/resource-types.ts';
import {
  VIRTUAL_MACHINE_CLONES,
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINES,
  type VirtualMachineClone,
  type VirtualMachineInstanceSpec,
} from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { findTpm } from '../../packages/node-agent/src/tpm/swtpm.ts';
import { isRunning, signalProcess } from '../../packages/runtime/src/process/identity.ts';
import { eventually } from '../testkit/eventually.ts';
import { savedMachines } from '../testkit/saved-machines.ts';
import { whyNoFirmware } from '../testkit/tiny-guest.ts';
import { type Board, kernelSpec, NAMESPACE, startBoard } from './board.ts';
import { inGuest } from './in-guest.ts';
import { NV_DEFINE, NV_READ, NV_WRITE, NV_WRITE_OTHER, nvData, otherData, tpmCommand } from './tpm-commands.ts';

const skip = whyNoFirmware() ?? false;

let board: Board;
before(async () => {
  if (!skip) board = await startBoard();
});
after(() => board?.close());

const remove = async (name: string): Promise<void> => {
  await board.client.delete(VIRTUAL_MACHINE_INSTANCES, { namespace: NAMESPACE, name });
  await eventually('the instance is gone', () =>
    board.vmi(name).then(
      () => false,
      () => true,
    ),
  );
};
const withTpm = (tpm: object) => {
  const spec = kernelSpec();
  return { ...spec, domain: { ...spec.domain, devices: { ...spec.domain.devices, tpm } } };
};
const directoryOf = (uid: string): string => `${board.directory}/node/vms/${uid}`;
const running = (name: string) => board.until(name, 'running', (vmi) => vmi.status?.phase === 'Running');

// S-631: A guest with `devices.tpm` has a TPM of its own, whose process outlives the agent, ends with the guest
//   whatever ended it, and starts empty.
test('a guest has a TPM, which outlives the agent, ends with the guest, and is empty at the next start', {
  skip,
}, async () => {
  await board.createVmi('trusted', withTpm({}));
  const vmi = await running('trusted');
  const directory = directoryOf(vmi.metadata.uid ?? '');
  const tpm = await findTpm(directory);
  assert.ok(tpm, 'its process runs');
  await inGuest(board, 'trusted', `${tpmCommand(NV_DEFINE)}; ${tpmCommand(NV_WRITE)}`);
  assert.ok((await inGuest(board, 'trusted', tpmCommand(NV_READ))).includes(nvData));
  await board.restartAgent();
  await running('trusted');
  assert.deepEqual(await findTpm(directory), tpm, 'the same process');
  assert.ok((await inGuest(board, 'trusted', tpmCommand(NV_READ))).includes(nvData));

  const { process: qemu } = await board.record(vmi);
  await remove('trusted');
  await eventually('QEMU gone', async () => !(await isRunning(qemu!)));
  await eventually('TPM gone', async () => !(await isRunning(tpm)));

  await board.createVmi('trusted', withTpm({}));
  const again = await running('trusted');
  assert.ok(!(await inGuest(board, 'trusted', tpmCommand(NV_READ))).includes(nvData), 'nothing is left');
  // The guest is killed from outside: nobody is left to tell its TPM.
  const killed = await findTpm(directoryOf(again.metadata.uid ?? ''));
  await signalProcess((await board.record(again)).process!, 'SIGKILL');
  await eventually('TPM gone after a kill', async () => killed !== undefined && !(await isRunning(killed)));
  await remove('trusted');
});

async function createVm(name: string, spec: VirtualMachineInstanceSpec): Promise<void> {
  const metadata = { name, namespace: NAMESPACE };
  const template = { metadata: {}, spec };
  const vm = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', metadata };
  await board.client.create(VIRTUAL_MACHINES, { ...vm, spec: { runStrategy: 'Always', template } });
}

/** Ends the instance; its machine makes another. */
async function restart(name: string): Promise<void> {
  const { metadata } = await board.vmi(name);
  await board.client.delete(VIRTUAL_MACHINE_INSTANCES, { namespace: NAMESPACE, name });
  await board.until(
    name,
    'running again',
    (vmi) => vmi.metadata.uid !== metadata.uid && vmi.status?.phase === 'Running',
  );
}

// S-634: The state of a TPM and the EFI variables that shall last are there after a restart of the guest, and are never
//   replaced by empty ones.
// S-678: The state of a TPM that lasts is in a snapshot of its machine and comes back with a restore; it goes to no
//   other machine and into no clone.
test('the state of a TPM that shall last is there after a restart, goes back with a restore, and to no other machine', {
  skip,
}, async () => {
  const words = savedMachines(board.client);
  const spec = kernelSpec({ terminationGracePeriodSeconds: 0 }) as { domain: { devices: object; firmware: object } };
  const devices = { ...spec.domain.devices, tpm: { persistent: true } };
  await createVm('sealed', { ...spec, domain: { ...spec.domain, devices } });
  await running('sealed');
  await inGuest(board, 'sealed', `${tpmCommand(NV_DEFINE)}; ${tpmCommand(NV_WRITE)}`);
  await restart('sealed');
  assert.ok((await inGuest(board, 'sealed', tpmCommand(NV_READ))).includes(nvData));

  await words.snapshot('before', 'sealed');
  await words.saved('before');
  await inGuest(board, 'sealed', tpmCommand(NV_WRITE_OTHER));
  assert.ok((await inGuest(board, 'sealed', tpmCommand(NV_READ))).includes(otherData));
  const replaced = await stateClaimOf('sealed');

  // A machine with a state of its own is neither restored to another one nor cloned: two guests would have one TPM.
  await assert.rejects(
    words.restore('elsewhere', 'before', 'other'),
    /Restore to a different VM is not supported when snapshotted VM has backend storage/,
  );
  await board.client.create(VIRTUAL_MACHINE_CLONES, cloneOf('sealed', 'copy'));
  await words.until(VIRTUAL_MACHINE_CLONES, 'copy', ({ status }) => status?.phase === 'Failed');
  await assert.rejects(words.vm('copy'), /not found/);

  await words.restore('back', 'before', 'sealed', { targetReadinessPolicy: 'StopTarget' });
  await words.restored('back');
  await eventually('the claim whose place was taken goes', async () =>
    (await claims()).every(([name]) => name !== replaced),
  );
  assert.deepEqual((await claims()).filter(([, machine]) => machine !== undefined).length, 1);
  await board.client.patch(
    VIRTUAL_MACHINES,
    { namespace: NAMESPACE, name: 'sealed' },
    { type: 'merge', body: { spec: { runStrategy: 'Always' } } },
  );
  await running('sealed');
  const said = await inGuest(board, 'sealed', tpmCommand(NV_READ));
  assert.ok(said.includes(nvData), said);
  await board.client.delete(VIRTUAL_MACHINES, { namespace: NAMESPACE, name: 'sealed' });
});

const claims = async (): Promise<[name: string, machine: string | undefined][]> =>
  (await board.client.list(PERSISTENT_VOLUME_CLAIMS, { namespace: NAMESPACE })).items.map(({ metadata }) => [
    metadata.name ?? '',
    metadata.labels?.['persistent-state-for'],
  ]);
const stateClaimOf = async (name: string): Promise<string | undefined> =>
  (await claims()).find(([, machine]) => machine === name)?.[0];
const cloneOf = (source: string, name: string): VirtualMachineClone =>
  ({
    apiVersion: 'clone.kubevirt.io/v1beta1',
    kind: 'VirtualMachineClone',
    metadata: { name, namespace: NAMESPACE },
    spec: {
      source: { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: source },
      target: { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name },
    },
  }) as VirtualMachineClone;
