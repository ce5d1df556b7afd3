/** Whether the machine a target would build is the machine the source runs. */
import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import { MAX_QUEUES } from '../machine/cpu.ts';
import { VIDEO_ID } from '../machine/devices.ts';
import type {
  CpuPlan,
  DevicePlace,
  DeviceSpec,
  MachinePlan,
  PlannedDisk,
  PlannedInterface,
} from '../machine/machine-plan.ts';
import { isPlugRoom } from '../machine/plug-room.ts';

/** Of the host or of the start, nothing a running guest sees. */
const NOT_OF_THE_GUEST: readonly string[] = ['sandbox', 'unsupported', 'startPaused', 'hostname', 'smbios', 'clock'];
/** Of the start too, and seen by the guest: it comes with what it has. */
const GOES_ALONG: readonly string[] = ['heldBackBytes', 'generationId'];

/**
 * The first field in which two plans differ for a running guest, undefined when none does. SMBIOS texts are read at boot
 * only: the source's go along (`movedPlan`).
 */
export function planDifference(source: MachinePlan, target: MachinePlan): keyof MachinePlan | undefined {
  const fields = new Set([...Object.keys(source), ...Object.keys(target)]) as Set<keyof MachinePlan>;
  return [...fields].sort().find((field) => {
    if (NOT_OF_THE_GUEST.includes(field) || GOES_ALONG.includes(field)) return false;
    // A guest of a version that gave none does not get one while it runs.
    if (field === 'tpm' && !source.tpm) return false;
    if (field === 'firmware') return source.firmware.kind !== target.firmware.kind;
    if (field === 'cpu') return !deepEqual(comparableCpu(source.cpu, source), comparableCpu(target.cpu, source));
    // A guest whose memory can be plugged comes as it is; what its instance says by now follows when it is here.
    if (field === 'devices') return !deepEqual(comparableDevices(source), comparableDevices(target));
    if (field === 'disks') return !deepEqual(comparableDisks(source), comparableDisks(target));
    if (field === 'interfaces') return !deepEqual(comparableCards(source), comparableCards(target));
    if (field === 'hotMemory' || (field === 'memoryBytes' && source.hotMemory)) return false;
    return !deepEqual(source[field] ?? null, target[field] ?? null);
  });
}

/**
 * The target's plan with what the guest has already: processors and memory as they are now, the room for more, and what a
 * reboot must find again: the display adapter, and the SMBIOS texts, where they have the same form.
 */
export function movedPlan(source: MachinePlan, target: MachinePlan): MachinePlan {
  const form = (plan: MachinePlan): unknown =>
    plan.smbios.map(({ type, fields }) => [type, fields.map(([name]) => name)]);
  const texts = source.smbios.every(({ fields }) => fields.every(([, value]) => typeof value === 'string'));
  const { hotMemory: _, heldBackBytes: ___, generationId: ____, tpm, ...rest } = target;
  const { maxSockets: __, ...cpu } = target.cpu;
  const { sockets, maxSockets } = source.cpu;
  return {
    ...rest,
    devices: movedDevices(source, target),
    disks: movedDisks(source, target),
    interfaces: movedCards(source, target),
    cpu: { ...cpu, sockets, ...(maxSockets !== undefined && { maxSockets }) },
    ...(tpm && source.tpm && { tpm }),
    memoryBytes: source.memoryBytes,
    ...(source.heldBackBytes !== undefined && { heldBackBytes: source.heldBackBytes }),
    ...(source.generationId !== undefined && { generationId: source.generationId }),
    ...(source.hotMemory && { hotMemory: source.hotMemory }),
    ...(texts && deepEqual(form(source), form(target)) && { smbios: source.smbios }),
  };
}

/**
 * The devices without what others are plugged into, and whichever display adapter: an instance names the same adapter for
 * good, but which stands for it, or is the default, may change with the version; so may the room for plugging.
 */
const comparableDevices = ({ devices }: MachinePlan): unknown =>
  devices.filter((device) => !isPlugRoom(device)).map((device) => (device.id === VIDEO_ID ? VIDEO_ID : device));

/** The target's devices in the order of the guest's, with the display adapter and the room for plugging that it has. */
function movedDevices(source: MachinePlan, target: MachinePlan): MachinePlan['devices'] {
  return source.devices.flatMap((device) => {
    if (device.id === VIDEO_ID) return [device];
    const here = target.devices.find(({ id }) => id === device.id);
    if (!here || !isPlugRoom(device)) return here ?? [];
    const { addr: _, num_queues: __, ...rest } = here;
    const { addr, num_queues } = device;
    const kept = { ...(typeof addr === 'string' && { addr }), ...(isQueues(num_queues) && { num_queues }) };
    return [{ ...rest, ...kept } as DeviceSpec];
  });
}

/** The target's disks in the order of the guest's, where they hang in its machine. */
function movedDisks(source: MachinePlan, target: MachinePlan): PlannedDisk[] {
  return (source.disks ?? []).flatMap(({ name, node, place, bootIndex, queues }) => {
    const same = target.disks.find((disk) => disk.name === name);
    if (!same) return [];
    const { node: _, place: __, bootIndex: ___, queues: ____, ...here } = same;
    return [
      {
        ...here,
        ...(Number.isInteger(node) && { node }),
        ...(place && { place: placeOf(place) }),
        ...(Number.isInteger(bootIndex) && { bootIndex }),
        ...(isQueues(queues) && { queues }),
      } as PlannedDisk,
    ];
  });
}

/** The target's cards in the order of the guest's, where they hang in its machine. */
const movedCards = (source: MachinePlan, target: MachinePlan): MachinePlan['interfaces'] =>
  (source.interfaces ?? []).flatMap(({ name, place, bootIndex }) => {
    const same = target.interfaces.find((card) => card.name === name);
    if (!same) return [];
    const { place: _, bootIndex: __, ...here } = same;
    return [
      { ...here, ...(place && { place: placeOf(place) }), ...(Number.isInteger(bootIndex) && { bootIndex }) },
    ] as PlannedInterface[];
  });

/** The cards by name, as with disks. */
const comparableCards = ({ interfaces = [] }: Partial<MachinePlan>): unknown =>
  interfaces.map(({ bootIndex: _, place: __, checksAddress: ___, ...card }) => card).sort(byName);

const isQueues = (value: unknown): value is number =>
  Number.isInteger(value) && Number(value) >= 1 && Number(value) <= MAX_QUEUES;

/** A source tells where a disk hangs, and nothing else of how this QEMU is to be started. */
const PLACE_FIELDS = ['bus', 'addr', 'scsi-id'];
const placeOf = (place: DevicePlace): DevicePlace =>
  Object.fromEntries(Object.entries(place).filter(([field]) => PLACE_FIELDS.includes(field)));

/** The disks by name: what was plugged in stands last in the plan of its guest, at a place of its own. */
const comparableDisks = ({ disks = [] }: Partial<MachinePlan>): unknown =>
  disks.map(({ bootIndex: _, node: __, place: ___, hotpluggable: ____, queues: _____, ...disk }) => disk).sort(byName);

const byName = (a: { readonly name: string }, b: { readonly name: string }): number => (a.name < b.name ? -1 : 1);

/** The processors without the sockets, where those can be plugged. */
function comparableCpu({ maxSockets: _, sockets, ...rest }: CpuPlan, source: MachinePlan): unknown {
  return source.cpu.maxSockets === undefined ? { ...rest, sockets } : rest;
}
