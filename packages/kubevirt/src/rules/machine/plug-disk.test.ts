import assert from 'node:assert/strict';
import { test } from 'node:test';
import { partly } from '../../../../../test/testkit/partly.ts';
import type { MachinePlan, PlannedDisk, PlannedInterface } from './machine-plan.ts';
import { plugCard } from './plug-card.ts';
import { nodeNumberOf, plugDisk, unplugDisk } from './plug-disk.ts';
import { addPlugRoom, freePlace, placeHotpluggable } from './plug-room.ts';

const DEVICES = ['virtio-scsi-pci', 'pcie-root-port'];
const disk = (name: string, bus: PlannedDisk['bus'], more: object = {}): PlannedDisk =>
  partly<PlannedDisk>({ name, id: `ua-${name}`, kind: 'disk', bus, hasVolume: true, ...more });
function machine(disks: PlannedDisk[], type = 'pc-q35-7.2'): MachinePlan {
  const plan = partly<MachinePlan>({
    machine: { type, options: {} },
    cpu: { model: 'max', features: [], sockets: 2, cores: 1, threads: 1 },
    disks,
    interfaces: [],
    devices: [],
    ioThreads: [],
  });
  addPlugRoom(plan, { devices: DEVICES, isWanted: true });
  placeHotpluggable(plan);
  return plan;
}
const changed = (change: ReturnType<typeof plugDisk>) => {
  assert.ok(typeof change !== 'string', String(change));
  return change;
};

test('disks that may be plugged have places of their own from the start; others move none of them', () => {
  const hot = { hotpluggable: true };
  const plan = machine([
    disk('root', 'virtio'),
    disk('a', 'scsi', hot),
    disk('b', 'virtio', hot),
    disk('c', 'scsi', hot),
  ]);
  assert.deepEqual(
    plan.disks.map(({ place }) => place),
    [undefined, { bus: 'scsi0.0', 'scsi-id': 0 }, { bus: 'plug-0', addr: '0x0' }, { bus: 'scsi0.0', 'scsi-id': 1 }],
  );
  // The controller of disks that are there for good is one of the ordinary devices, as before there was any plugging.
  const addr = (of: MachinePlan) => of.devices.find(({ id }) => id === 'scsi0')?.['addr'];
  assert.equal(addr(plan), '0x1d.0x0');
  assert.equal(addr(machine([disk('root', 'scsi')])), undefined);
  assert.equal(addr(machine([])), '0x1d.0x0');
  assert.equal(machine([], 'pc-i440fx-7.2').devices.length, 1, 'ports are of PCI Express');
});

test('a disk gets the first free place and a number that no other has; a port at a time for virtio', () => {
  let plan = machine([disk('root', 'virtio', { bootIndex: 1 })]);
  for (const [name, bus, place] of [
    ['a', 'scsi', { bus: 'scsi0.0', 'scsi-id': 0 }],
    ['b', 'scsi', { bus: 'scsi0.0', 'scsi-id': 1 }],
    ['c', 'virtio', { bus: 'plug-0', addr: '0x0' }],
  ] as const) {
    const change = changed(plugDisk(plan, disk(name, bus, { bootIndex: 2 })));
    assert.deepEqual([change.disk.place, change.disk.bootIndex], [place, undefined]);
    plan = change.plan;
  }
  plan = unplugDisk(plan, 'a');
  assert.deepEqual(
    plan.disks.map(({ name }) => [name, nodeNumberOf(plan, name)]),
    [
      ['root', 0],
      ['b', 2],
      ['c', 3],
    ],
  );
  const again = changed(plugDisk(plan, disk('d', 'scsi')));
  assert.deepEqual([again.disk.node, again.disk.place], [4, { bus: 'scsi0.0', 'scsi-id': 0 }]);
  for (let n = 0; n < 3; n++) plan = changed(plugDisk(plan, disk(`v${n}`, 'virtio'))).plan;
  assert.match(String(plugDisk(plan, disk('v3', 'virtio'))), /no free place on bus virtio/);
  assert.match(String(plugDisk(plan, disk('s', 'sata'))), /no free place on bus sata/);
});

test('a guest of a plan without places has its SCSI ids in the order of its disks', () => {
  const plan = partly<MachinePlan>({
    devices: [{ driver: 'virtio-scsi-pci', id: 'scsi0' }],
    disks: [disk('a', 'scsi'), disk('b', 'virtio'), disk('c', 'scsi')],
    interfaces: [],
    ioThreads: [],
  });
  assert.deepEqual(freePlace(plan, 'scsi'), { bus: 'scsi0.0', 'scsi-id': 2 });
  assert.equal(freePlace(plan, 'virtio'), undefined);
});

// S-1364
test('cards and disks share the ports; a card that finds none is not plugged', () => {
  const card = (name: string, more: object = {}) => partly<PlannedInterface>({ name, bootIndex: 1, ...more });
  let plan = changed(plugDisk(machine([]), disk('v', 'virtio'))).plan;
  for (const name of ['a', 'b', 'c']) {
    const plugged = plugCard(plan, card(name));
    assert.ok(plugged && plugged.bootIndex === undefined);
    plan = { ...plan, interfaces: [...plan.interfaces, plugged] };
  }
  assert.deepEqual(
    [...plan.disks, ...plan.interfaces].map(({ place }) => place?.['bus']),
    ['plug-0', 'plug-1', 'plug-2', 'plug-3'],
  );
  assert.equal(plugCard(plan, card('d')), undefined);
  plan = { ...plan, interfaces: plan.interfaces.filter(({ name }) => name !== 'b') };
  assert.deepEqual(plugCard(plan, card('d'))?.place, { bus: 'plug-2', addr: '0x0' });
  assert.equal(plugCard(machine([], 'pc-i440fx-7.2'), card('d')), undefined);
});

test('a medium comes into its drive and leaves it there', () => {
  const drive = disk('drive', 'sata', { kind: 'cdrom', hasVolume: false, readOnly: true });
  const { plan } = changed(plugDisk(machine([drive]), { ...drive, hasVolume: true }));
  assert.equal(plan.disks[0]?.hasVolume, true);
  assert.equal(unplugDisk(plan, 'drive').disks[0]?.hasVolume, false);
  assert.match(String(plugDisk(machine([]), drive)), /cannot be plugged in/);
});
