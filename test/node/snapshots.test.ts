/** Snapshots and restores of machines on real guests: what is on the disk, and who the guest is. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { PERSISTENT_VOLUME_CLAIMS } from '../../packages/apimachinery/src/types/resource-types.ts';
import { isNotFound } from '../../packages/client/src/api-failure.ts';
import {
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINES,
  type VirtualMachine,
} from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { eventually } from '../testkit/eventually.ts';
import { key, type SavedMachines, savedMachines } from '../testkit/saved-machines.ts';
import { type Board, kernelSpec, NAMESPACE, startBoard } from './board.ts';
import { type Shell, shell } from './shell.ts';

let board: Board;
let words: SavedMachines;
before(async () => {
  board = await startBoard();
  words = savedMachines(board.client);
});
after(() => board?.close());

/** 64 MiB: distinct from the other disks by its size. */
const SECTORS = 131072;
const DISK = `/dev/$(cd /sys/block; grep -lx ${SECTORS} vd*/size | cut -d/ -f1)`;

const power = (name: string, runStrategy: 'Always' | 'Halted') =>
  board.client.patch(VIRTUAL_MACHINES, key(name), { type: 'merge', body: { spec: { runStrategy } } });
async function start(name: string): Promise<Shell> {
  await power(name, 'Always');
  await board.until(name, 'running', ({ status }) => status?.phase === 'Running');
  return shell(board, name, true);
}
async function stop(name: string): Promise<void> {
  await power(name, 'Halted');
  await eventually('stopped', async () => {
    try {
      await board.client.get(VIRTUAL_MACHINE_INSTANCES, key(name));
      return false;
    } catch (error) {
      if (isNotFound(error)) return true;
      throw error;
    }
  });
}
const write = (guest: Shell, text: string) =>
  guest.run(`printf ${text} | dd of=${DISK} conv=notrunc 2>/dev/null; sync`);
const read = (guest: Shell) => guest.run(`head -c 5 ${DISK}`);
const uuid = (guest: Shell) => guest.run('cat /sys/class/dmi/id/product_uuid');

// S-575: A guest that was restored reads what its disk held when the snapshot was taken, running or not, under the same
//   UUID; a machine made from a snapshot has another.
test('a machine goes back to what its disk held while it ran, and a new one to what it held when it was off', async () => {
  await board.client.create(PERSISTENT_VOLUME_CLAIMS, {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name: 'data', namespace: NAMESPACE },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '64Mi' } } },
  });
  const { domain, ...template } = kernelSpec({ terminationGracePeriodSeconds: 1 }) as { domain: { devices: object } };
  await board.client.create(VIRTUAL_MACHINES, {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name: 'db', namespace: NAMESPACE },
    spec: {
      runStrategy: 'Always',
      template: {
        spec: {
          ...template,
          domain: { ...domain, devices: { ...domain.devices, disks: [{ name: 'data', disk: { bus: 'virtio' } }] } },
          volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }],
        },
      },
    },
  } as unknown as VirtualMachine);

  const first = await start('db');
  const identity = await uuid(first);
  await write(first, 'first');
  await board.until('db', 'its agent', ({ status }) =>
    (status?.conditions ?? []).some(({ type, status: value }) => type === 'AgentConnected' && value === 'True'),
  );
  await words.snapshot('online', 'db');
  const snapshot = await words.saved('online');
  // Held still for that moment, and thawed: it writes on below.
  assert.deepEqual(snapshot.status?.indications, ['GuestAgent', 'Online']);
  assert.deepEqual(snapshot.status?.snapshotVolumes, { includedVolumes: ['data'] });
  // The guest runs on, on its own disk.
  await write(first, 'other');
  assert.equal(await read(first), 'other');

  await words.restore('back', 'online', 'db', { targetReadinessPolicy: 'StopTarget', volumeRestorePolicy: 'InPlace' });
  await words.restored('back');
  const second = await start('db');
  assert.equal(await read(second), 'first');
  assert.equal(await uuid(second), identity);

  await write(second, 'again');
  await stop('db');
  await words.snapshot('offline', 'db');
  assert.equal((await words.saved('offline')).status?.indications, undefined);
  await words.restore('twin', 'offline', 'db2', { volumeRestorePolicy: 'PrefixTargetName' });
  await words.restored('twin');
  const twin = await start('db2');
  assert.equal(await read(twin), 'again');
  const other = await uuid(twin);
  assert.match(other, /^[0-9a-f-]{36}$/);
  assert.notEqual(other, identity);
});
