/**
 * Volumes that come into a virtual machine, or go, while its instance runs: what becomes of them in the instance, and
 * which differences between two templates are no more than that.
 */
import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import type { Disk, ReadonlyVmi, VirtualMachineInstanceSpec, Volume } from '../../kinds/kubevirt.ts';
import { isHotpluggable } from '../machine/plug-room.ts';
import type { LiveUpdateDecision, PatchOperation } from './live-update-decision.ts';
import { mergeNamed } from './merge-named.ts';
import { isMoving } from './pending-changes.ts';

type Spec = DeepReadonly<VirtualMachineInstanceSpec>;
type ReadonlyDisk = DeepReadonly<Disk>;
type ReadonlyVolume = DeepReadonly<Volume>;

/** On an instance: names of the volumes, comma separated, that its virtual machine knows nothing of. They end with it. */
export const EPHEMERAL_VOLUMES = 'kubevirt.io/ephemeral-hotplug-volumes';

/** The names in that annotation. */
export const ephemeralVolumes = ({ metadata }: ReadonlyVmi): readonly string[] =>
  (metadata.annotations?.[EPHEMERAL_VOLUMES] ?? '').split(',').filter((name) => name !== '');

/** Volumes and disks of an instance. */
export interface InstanceDisks {
  readonly volumes: readonly ReadonlyVolume[];
  readonly disks: readonly ReadonlyDisk[];
}

/** Those of a spec. */
export const disksOf = (spec: Spec): InstanceDisks => ({
  volumes: spec.volumes ?? [],
  disks: spec.domain?.devices?.disks ?? [],
});

/** The change of an instance's spec, each list behind a test of what it replaces. */
export function diskPatch(spec: Spec, { volumes, disks }: InstanceDisks): PatchOperation[] {
  const patch: PatchOperation[] = [];
  const put = (path: string, before: unknown, after: readonly unknown[]): void => {
    if (deepEqual(before ?? [], after)) return;
    if (before !== undefined) patch.push({ op: 'test', path, value: before });
    patch.push({ op: 'add', path, value: after });
  };
  put('/spec/volumes', spec.volumes, volumes);
  put('/spec/domain/devices/disks', spec.domain?.devices?.disks, disks);
  return patch;
}

/** Why a disk cannot be plugged into a running guest (upstream's storage-hotplug admitter); undefined when it can. */
export function plugObstacle(disk: ReadonlyDisk | undefined): string | undefined {
  if (!disk) return 'a plugged volume needs a disk of its name';
  if (disk.cdrom) return undefined;
  if (disk.lun) {
    return disk.lun.bus === undefined || disk.lun.bus === 'scsi'
      ? undefined
      : `hotplugged LUN ${disk.name} does not use a scsi bus`;
  }
  if (!disk.disk) return `hotplugged Disk ${disk.name} must be a disk, a lun, or a medium for a cdrom`;
  const { bus } = disk.disk;
  if (bus !== 'scsi' && bus !== 'virtio') return `hotplugged Disk ${disk.name} does not use a scsi or virtio bus`;
  return disk.dedicatedIOThread && bus !== 'virtio'
    ? `hotplugged Disk ${disk.name} can't use dedicated IOThread: scsi bus is unsupported.`
    : undefined;
}

/**
 * Decides which volumes of the machine its running instance gets, and which it gives back. A medium that is swapped goes
 * first and comes when it has gone. `isFilled` false: a DataVolume of the machine is still being filled.
 */
export function volumesDecision({
  wanted,
  vmi,
  isFilled,
}: {
  readonly wanted: Spec;
  readonly vmi: ReadonlyVmi;
  readonly isFilled: boolean;
}): LiveUpdateDecision {
  const before = disksOf(vmi.spec);
  const target = disksOf(wanted);
  const own = new Set(ephemeralVolumes(vmi));
  const diskOf = ({ disks }: InstanceDisks, name: string) => disks.find((disk) => disk.name === name);
  const here = new Map(before.volumes.map((volume) => [volume.name, volume]));
  const there = new Map(target.volumes.map((volume) => [volume.name, volume]));
  let restart: string | undefined;
  const goes = (volume: ReadonlyVolume): boolean => {
    if (!isHotpluggable(volume) || own.has(volume.name)) return false;
    const next = there.get(volume.name);
    if (!next) return true;
    const disk = diskOf(before, volume.name);
    const same = deepEqual(sourceOf(next), sourceOf(volume));
    if (!same && disk?.cdrom) return true;
    if (!same || !isSameDisk(disk, diskOf(target, volume.name))) restart = UNSUPPORTED;
    return false;
  };
  const volumes = before.volumes.filter((volume) => !goes(volume));
  let disks = before.disks.filter(
    ({ name, cdrom }) => cdrom || !here.has(name) || volumes.some((volume) => volume.name === name),
  );
  // A volume that is on its way out is not taken for the one that comes.
  const leaving = new Set((vmi.status?.volumeStatus ?? []).map(({ name }) => name));
  for (const volume of target.volumes) {
    const { name } = volume;
    if (!isHotpluggable(volume) || here.has(name) || leaving.has(name)) continue;
    if (volume.dataVolume && !isFilled) continue;
    const disk = diskOf(target, name);
    const obstacle = plugObstacle(disk);
    if (obstacle !== undefined) return { patch: [], failure: { reason: 'HotPlugVolumeError', message: obstacle } };
    const drive = diskOf(before, name);
    if (disk?.cdrom && !drive) {
      restart = UNSUPPORTED;
      continue;
    }
    volumes.push(volume);
    if (!drive && disk) disks = [...disks, disk.serial === undefined ? { ...disk, serial: name } : disk];
  }
  const patch = diskPatch(vmi.spec, { volumes, disks });
  const why = restart !== undefined && { restart };
  if (patch.length > 0 && isMoving(vmi))
    return {
      patch: [],
      ...why,
      failure: { reason: 'HotPlugVolumeError', message: 'volumes are not changed while the VMI is migrating' },
    };
  return { patch, ...why };
}

const UNSUPPORTED = 'a non-live-updatable field was changed in the template spec';

const sourceOf = ({ name: _, ...source }: ReadonlyVolume): unknown => source;

/** Plugged disks have a serial number that nobody wrote. */
const isSameDisk = (a: ReadonlyDisk | undefined, b: ReadonlyDisk | undefined): boolean =>
  deepEqual(a && { ...a, serial: a.serial ?? a.name }, b && { ...b, serial: b.serial ?? b.name });

/**
 * Gives `started` the volumes that may be plugged as `current` has them, with their disks, so that only other differences
 * are left. Changes `started`. A volume that is in both and is not the same stays a difference, but for a medium.
 */
export function neutraliseVolumes(started: VirtualMachineInstanceSpec, current: VirtualMachineInstanceSpec): void {
  const [then, now] = [disksOf(started), disksOf(current)];
  const hot = new Set([...then.volumes, ...now.volumes].filter(isHotpluggable).map(({ name }) => name));
  if (hot.size === 0) return;
  const isInBoth = (name: string): boolean => [then, now].every((one) => one.volumes.some((v) => v.name === name));
  const isDrive = (name: string): boolean => then.disks.some((disk) => disk.name === name && disk.cdrom);
  const isFree = (name: string): boolean => hot.has(name) && (!isInBoth(name) || isDrive(name));
  const volumes = mergeNamed(then.volumes, now.volumes, isFree);
  const disks = mergeNamed(then.disks, now.disks, (name) => isFree(name) && !isDrive(name));
  if (started.volumes !== undefined || volumes.length > 0) started.volumes = volumes as Volume[];
  if (started.domain && (started.domain.devices?.disks !== undefined || disks.length > 0))
    started.domain.devices = { ...started.domain.devices, disks: disks as Disk[] };
}
