/** A real guest that moves to another node with disks that were plugged into it. */
// test:full: boots a guest and moves it twice.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { PERSISTENT_VOLUME_CLAIMS } from '../../packages/apimachinery/src/types/resource-types.ts';
import type { PersistentVolumeClaim } from '../../packages/apimachinery/src/types/types.ts';
import {
  VIRTUAL_MACHINE_INSTANCE_MIGRATIONS,
  VIRTUAL_MACHINES,
  type VirtualMachine,
  type VirtualMachineInstance,
  type VirtualMachineInstanceMigration,
} from '../../packages/kubevirt/src/kinds/kinds.ts';
import { eventually } from '../testkit/eventually.ts';
import { partly } from '../testkit/partly.ts';
import { kernelSpec, NAMESPACE } from './board.ts';
import { inGuest } from './in-guest.ts';
import { type MigrationBoard, startMigrationBoard } from './migration-board.ts';

let board: MigrationBoard;
before(async () => {
  board = await startMigrationBoard({ controller: true });
});
after(() => board?.close());

const NAME = 'mover';
const key = { namespace: NAMESPACE, name: NAME };
const says = (command: string, expected: RegExp) =>
  eventually(`${command}: ${expected}`, async () => {
    const vmi = await board.vmi(NAME);
    return expected.test(await inGuest({ connect: () => board.console(vmi) }, NAME, command));
  });
const edit = (spec: object) =>
  board.client.patch(VIRTUAL_MACHINES, key, { type: 'merge', body: { spec: { template: { spec } } } });
const phaseOf = (vmi: VirtualMachineInstance, name: string) =>
  vmi.status?.volumeStatus?.find((one) => one.name === name)?.phase;
const volume = (name: string) => ({ name, persistentVolumeClaim: { claimName: name, hotpluggable: true } });
const disk = (name: string, bus = 'scsi') => ({ name, disk: { bus } });

async function move(): Promise<void> {
  const from = (await board.vmi(NAME)).status?.nodeName;
  await board.client.create(
    VIRTUAL_MACHINE_INSTANCE_MIGRATIONS,
    partly<VirtualMachineInstanceMigration>({
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachineInstanceMigration',
      metadata: { generateName: 'move-', namespace: NAMESPACE },
      spec: { vmiName: NAME },
    }),
  );
  await board.until(NAME, 'has moved', ({ status }) => {
    const state = status?.migrationState;
    assert.ok(!state?.failed, state?.failureReason ?? 'it failed');
    return status?.nodeName !== from && state?.completed === true;
  });
}

// S-1254
test('plugged disks go along, in their places, and are unplugged where the guest has come to', {
  timeout: 600_000,
}, async () => {
  for (const name of ['one', 'two'])
    await board.client.create(
      PERSISTENT_VOLUME_CLAIMS,
      partly<PersistentVolumeClaim>({
        apiVersion: 'v1',
        kind: 'PersistentVolumeClaim',
        metadata: { name, namespace: NAMESPACE },
        spec: { accessModes: ['ReadWriteMany'], resources: { requests: { storage: '16Mi' } } },
      }),
    );
  const spec = kernelSpec();
  const seed = { name: 'seed', cloudInitNoCloud: { userData: '#cloud-config\nhostname: mover\n' } };
  // What goes away later stands before what is copied.
  spec.domain.devices.disks = [disk('one'), disk('seed', 'virtio')];
  await board.client.create(
    VIRTUAL_MACHINES,
    partly<VirtualMachine>({
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachine',
      metadata: { name: NAME, namespace: NAMESPACE },
      spec: { runStrategy: 'Always', template: { spec: { ...spec, volumes: [volume('one'), seed] } } },
    }),
  );
  await board.until(NAME, 'runs', ({ status }) => status?.phase === 'Running');
  const devices = (...disks: object[]) => ({ devices: { disks } });
  await edit({
    volumes: [volume('one'), seed, volume('two')],
    domain: devices(disk('one'), disk('seed', 'virtio'), disk('two', 'virtio')),
  });
  await board.until(NAME, 'has both', (vmi) => phaseOf(vmi, 'one') === 'Ready' && phaseOf(vmi, 'two') === 'Ready');
  await says(
    'ls /dev/sda /dev/vdb && echo first >/dev/sda && echo second >/dev/vdb && sync && echo wr""ote',
    /\nwrote/,
  );
  await move();
  await says('echo 3 >/proc/sys/vm/drop_caches; head -c 5 /dev/sda; head -c 6 /dev/vdb', /firstsecond/);
  await edit({ volumes: [seed, volume('two')], domain: devices(disk('seed', 'virtio'), disk('two', 'virtio')) });
  await board.until(NAME, 'has one', (vmi) => phaseOf(vmi, 'one') === undefined);
  await says('ls /dev/sda', /No such file/);
  await move();
  await says(
    'echo 3 >/proc/sys/vm/drop_caches; head -c 6 /dev/vdb; head -c 32800 /dev/vda | tail -c 31',
    /second.*CD001/s,
  );
  await edit({ volumes: [seed], domain: devices(disk('seed', 'virtio')) });
  await board.until(NAME, 'has none', (vmi) => phaseOf(vmi, 'two') === undefined);
  await says('ls /dev/vdb', /No such file/);
});
