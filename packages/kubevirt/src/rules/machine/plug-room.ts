/**
 * Where disks and cards are plugged while a guest runs: a SCSI controller, and PCI Express ports. They have slots of
 * their own, so that a device that is plugged, and is there from the start the next time, moves none of the others.
 */
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import type { Volume } from '../../kinds/kinds.ts';
import { queuesFor } from './cpu.ts';
import type { DevicePlace, DeviceSpec, MachinePlan, PlannedDisk } from './machine-plan.ts';

/** Id of the controller of all SCSI disks. */
export const SCSI = 'scsi0';
const SCSI_SLOT = '0x1d.0x0';
const PORT_SLOT = '0x1e';
/** Ports of a machine: each takes one virtio disk or card. */
export const PORTS = 4;
/** SCSI ids of a virtio controller: 0 to 255. */
const MAX_SCSI_IDS = 256;

/** True for a volume that may be plugged and unplugged while the guest runs. */
export const isHotpluggable = (volume: DeepReadonly<Volume> | undefined): boolean =>
  (volume?.persistentVolumeClaim?.hotpluggable ?? volume?.dataVolume?.hotpluggable) === true;

/** True for a device that only holds places for others. */
export const isPlugRoom = ({ id, driver }: DeviceSpec): boolean => id === SCSI || driver === PORT;

const PORT = 'pcie-root-port';
const portId = (n: number): string => `plug-${n}`;

/**
 * Adds what devices are plugged into. A machine with SCSI disks that are there for good has its controller among its
 * other devices; where there is no ACPI, by which a guest is notified, or no PCI Express, there are no ports.
 */
export function addPlugRoom(
  plan: MachinePlan,
  { devices, isWanted }: { readonly devices: readonly string[]; readonly isWanted: boolean },
): void {
  const scsi = plan.disks.filter((disk) => disk.bus === 'scsi');
  const driver = 'virtio-scsi-pci';
  if (scsi.some((disk) => !disk.hotpluggable)) plan.devices.push({ driver, id: SCSI, num_queues: queuesFor(plan.cpu) });
  else if (scsi.length > 0 || (isWanted && devices.includes(driver)))
    plan.devices.push({ driver, id: SCSI, addr: SCSI_SLOT, num_queues: 1 });
  const hasPorts = plan.machine.type.includes('q35') && plan.machine.options['acpi'] !== 'off';
  if (!isWanted || !hasPorts || !devices.includes(PORT)) return;
  for (let n = 0; n < PORTS; n++)
    plan.devices.push({
      driver: PORT,
      id: portId(n),
      addr: `${PORT_SLOT}.0x${n}`,
      chassis: n + 1,
      ...(n === 0 && { multifunction: true }),
    });
}

/** Gives the disks that are there from the start, and may be unplugged, the places that plugging would give them. */
export function placeHotpluggable(plan: MachinePlan): void {
  const before: PlannedDisk[] = [];
  for (const disk of plan.disks) {
    const isPlaced = disk.bus === 'scsi' || disk.hotpluggable === true;
    const place = isPlaced ? freePlace({ ...plan, disks: before }, disk.bus) : undefined;
    before.push(place ? { ...disk, place } : disk);
  }
  plan.disks = before;
}

/** The first free place for one more disk or card; undefined where the machine has none. */
export function freePlace(plan: MachinePlan, bus: PlannedDisk['bus']): DevicePlace | undefined {
  if (bus === 'scsi') {
    if (!plan.devices.some(({ id }) => id === SCSI)) return undefined;
    // Disks of plans without places have the ids in their order: QEMU gives them so.
    const taken = new Set(plan.disks.filter((disk) => disk.bus === 'scsi').map(scsiId));
    for (let id = 0; id < MAX_SCSI_IDS; id++) if (!taken.has(id)) return { bus: `${SCSI}.0`, 'scsi-id': id };
    return undefined;
  }
  if (bus !== 'virtio') return undefined;
  const taken = new Set([...plan.disks, ...plan.interfaces].map(({ place }) => place?.['bus']));
  const port = plan.devices.find(({ driver, id }) => driver === PORT && !taken.has(id));
  return port && { bus: port.id, addr: '0x0' };
}

const scsiId = (disk: PlannedDisk, order: number): number | undefined => {
  const id = disk.place?.['scsi-id'];
  return typeof id === 'number' ? id : order;
};
