import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import type { Disk, Volume } from '../../kinds/kinds.ts';
import { queuesFor } from './cpu.ts';
import { type DiskBus, type MachinePlan, type PlanContext, PlanError, type PlannedDisk } from './machine-plan.ts';
import { addPlugRoom, isHotpluggable, placeHotpluggable } from './plug-room.ts';

type ReadonlyDisk = DeepReadonly<Disk>;
type ReadonlyVolume = DeepReadonly<Volume>;

const isOneOf =
  (...sources: readonly (keyof Volume)[]) =>
  (volume: ReadonlyVolume | undefined): boolean =>
    sources.some((source) => volume?.[source] !== undefined);

/** Contents that are lost at stop: there is nothing to lose by caching them. */
const isEphemeral = isOneOf('containerDisk', 'emptyDisk', 'ephemeral');
/** ISO images of ours: read-only by nature. */
const isImage = isOneOf(
  'cloudInitNoCloud',
  'cloudInitConfigDrive',
  'sysprep',
  'configMap',
  'secret',
  'downwardAPI',
  'serviceAccount',
);
/** Volumes that become no disk of the guest. */
const hasNoDisk = isOneOf('memoryDump', 'containerPath', 'downwardMetrics');

const BUSES: readonly DiskBus[] = ['virtio', 'sata', 'scsi', 'usb'];
const asBus = (text: string | undefined): DiskBus | undefined => BUSES.find((bus) => bus === text);

/** `a`..`z`, `aa`, ...: the letters of the nth disk. */
export function diskLetters(n: number): string {
  let letters = '';
  for (let i = n; i >= 0; i = Math.floor(i / 26) - 1) letters = String.fromCharCode(97 + (i % 26)) + letters;
  return letters;
}

/** Disks in list order; target names stay as volumeStatus has them. */
export function configureDisks({ vmi, facts }: PlanContext, plan: MachinePlan): void {
  const { devices, ioThreadsPolicy } = vmi.spec.domain;
  const volumes = new Map((vmi.spec.volumes ?? []).map((volume) => [volume.name, volume]));
  const shared = new Set((devices.filesystems ?? []).map((filesystem) => filesystem.name));
  const listed: ReadonlyDisk[] = [...(devices.disks ?? [])];
  for (const volume of volumes.values())
    if (!hasNoDisk(volume) && !shared.has(volume.name) && !listed.some((disk) => disk.name === volume.name))
      listed.push({ name: volume.name });
  const ordered = [...listed, ...(devices.interfaces ?? [])].some(({ bootOrder }) => bootOrder !== undefined);
  const targets = targetNames(listed, new Map((vmi.status?.volumeStatus ?? []).map((s) => [s.name, s.target])));

  for (const [position, disk] of listed.entries()) {
    const volume = volumes.get(disk.name);
    const kind = disk.cdrom ? 'cdrom' : 'disk';
    if (!volume && kind === 'disk') {
      plan.unsupported.push(`disk ${disk.name} has no volume; it is left out`);
      continue;
    }
    const bus = busOf(disk);
    const planned: PlannedDisk = {
      name: disk.name,
      id: `ua-${disk.name}`,
      kind,
      bus: kind === 'cdrom' && bus === 'virtio' ? 'sata' : bus,
      target: targets.get(disk.name) ?? '',
      hasVolume: volume !== undefined,
      // An AHCI hard disk cannot be read-only: there the image is the guest's own, and scratch, as upstream has it.
      readOnly: (isImage(volume) && !(busOf(disk) === 'sata' && !disk.cdrom)) || isReadOnly(disk, volume),
      ...(disk.serial !== undefined && { serial: disk.serial }),
      ...bootIndexOf(disk, position, ordered),
      ...cachingOf(disk, volume, plan),
      errorPolicy: errorPolicyOf(disk.errorPolicy),
      shareable: disk.shareable === true,
      ...blockSizeOf(disk),
      ...(bus === 'virtio' && ioThreadOf(disk, ioThreadsPolicy, plan)),
      ...(bus === 'virtio' && kind === 'disk' && { queues: queuesFor(plan.cpu) }),
      ...(isHotpluggable(volume) && { hotpluggable: true }),
    };
    if (planned.readOnly && planned.bus === 'sata' && kind === 'disk')
      throw new PlanError(
        `disk ${disk.name}: a SATA hard disk cannot be read-only; use the bus virtio or scsi, or a cdrom`,
      );
    plan.disks.push(planned);
  }
  addPlugRoom(plan, { devices: facts.devices, isWanted: devices.disableHotplug !== true });
  placeHotpluggable(plan);
}

/** The prefix by bus, the letter by place among the disks of that prefix; names given before are kept. */
function targetNames(disks: readonly ReadonlyDisk[], before: ReadonlyMap<string, string>): Map<string, string> {
  const names = new Map<string, string>();
  const taken = new Set<string>();
  const prefixOf = (disk: ReadonlyDisk): string => (busOf(disk) === 'virtio' && !disk.cdrom ? 'vd' : 'sd');
  for (const disk of disks) {
    const old = before.get(disk.name);
    if (!old?.startsWith(prefixOf(disk)) || taken.has(old)) continue;
    names.set(disk.name, old);
    taken.add(old);
  }
  for (const disk of disks) {
    if (names.has(disk.name)) continue;
    let n = 0;
    while (taken.has(`${prefixOf(disk)}${diskLetters(n)}`)) n++;
    const name = `${prefixOf(disk)}${diskLetters(n)}`;
    names.set(disk.name, name);
    taken.add(name);
  }
  return names;
}

const busOf = (disk: ReadonlyDisk): DiskBus =>
  disk.cdrom
    ? (asBus(disk.cdrom.bus) ?? 'sata')
    : (asBus(disk.lun?.bus ?? disk.disk?.bus) ?? (disk.lun ? 'scsi' : 'sata'));

function isReadOnly(disk: ReadonlyDisk, volume: ReadonlyVolume | undefined): boolean {
  if (disk.cdrom) return disk.cdrom.readonly !== false;
  return (disk.disk?.readonly ?? disk.lun?.readonly) === true || volume?.persistentVolumeClaim?.readOnly === true;
}

/** Any boot order given: only those devices boot, in that order. None: the disks in list order. */
function bootIndexOf(disk: ReadonlyDisk, position: number, ordered: boolean): { bootIndex?: number } {
  if (ordered) return disk.bootOrder === undefined ? {} : { bootIndex: disk.bootOrder };
  return { bootIndex: position + 1 };
}

function cachingOf(
  disk: ReadonlyDisk,
  volume: ReadonlyVolume | undefined,
  plan: MachinePlan,
): Pick<PlannedDisk, 'cache' | 'io'> {
  const CACHES = ['none', 'writethrough', 'writeback', 'directsync'] as const;
  const cache =
    CACHES.find((mode) => mode === disk.cache) ??
    (disk.shareable ? 'none' : isEphemeral(volume) || isImage(volume) ? 'writeback' : 'writethrough');
  if (disk.io === 'native' && cache !== 'none' && cache !== 'directsync') {
    plan.unsupported.push(`disk ${disk.name}: io native needs cache none; threads are used`);
    return { cache, io: 'threads' };
  }
  return { cache, io: disk.io === 'native' ? 'native' : 'threads' };
}

const errorPolicyOf = (text: string | undefined): PlannedDisk['errorPolicy'] =>
  text === 'ignore' || text === 'report' || text === 'enospace' ? text : 'stop';

function blockSizeOf(disk: ReadonlyDisk): Pick<PlannedDisk, 'blockSize'> {
  const { logical, physical = logical, discardGranularity } = disk.blockSize?.custom ?? {};
  if (!logical || physical === undefined) return {};
  return { blockSize: { logical, physical, ...(discardGranularity !== undefined && { discardGranularity }) } };
}

/** 'shared' and 'auto': one thread for all disks that ask for none of their own. */
function ioThreadOf(disk: ReadonlyDisk, policy: string | undefined, plan: MachinePlan): { ioThread?: string } {
  const id = disk.dedicatedIOThread ? `iothread-${plan.ioThreads.length + 1}` : policy ? 'iothread-0' : undefined;
  if (id === undefined) return {};
  if (!plan.ioThreads.includes(id)) plan.ioThreads.push(id);
  return { ioThread: id };
}
