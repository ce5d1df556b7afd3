/** The plan of a guest that is given a disk or a medium while it runs, or gives one back. */
import type { MachinePlan, PlannedDisk } from './machine-plan.ts';
import { freePlace } from './plug-room.ts';

/** A plan that has changed, and the disk of it that has. */
export interface DiskChange {
  readonly plan: MachinePlan;
  readonly disk: PlannedDisk;
}

/** Number of the block node of the disk at that place in the list: no other disk of this guest has it. */
export const nodeNumber = ({ disks }: Pick<MachinePlan, 'disks'>, at: number): number => disks[at]?.node ?? at;

/** The same of a disk by its name; undefined where there is none. */
export function nodeNumberOf(plan: Pick<MachinePlan, 'disks'>, name: string): number | undefined {
  const at = plan.disks.findIndex((disk) => disk.name === name);
  return at < 0 ? undefined : nodeNumber(plan, at);
}

/** Node numbers that stay as they are, whatever becomes of the list. */
const numbered = (plan: MachinePlan): PlannedDisk[] =>
  plan.disks.map((disk, at) => ({ ...disk, node: nodeNumber(plan, at) }));

/**
 * The plan with one more disk, or with a medium in a drive that is there. A text says why there is no place for it. A disk
 * that is plugged is nothing to boot from: its place in the order is that of the next start.
 */
export function plugDisk(plan: MachinePlan, wanted: PlannedDisk): DiskChange | string {
  const disks = numbered(plan);
  const at = disks.findIndex(({ name }) => name === wanted.name);
  if (wanted.kind === 'cdrom') {
    const drive = disks[at];
    if (!drive) return `disk ${wanted.name}: a CD-ROM drive cannot be plugged in while the guest runs`;
    const disk: PlannedDisk = { ...drive, hasVolume: true, hotpluggable: true, readOnly: wanted.readOnly };
    return { plan: { ...plan, disks: disks.with(at, disk) }, disk };
  }
  const place = freePlace(plan, wanted.bus);
  if (!place) return `disk ${wanted.name}: the machine of this guest has no free place on bus ${wanted.bus}`;
  const { bootIndex: _, ioThread, ...rest } = wanted;
  const node = Math.max(-1, ...disks.map((one) => one.node ?? 0)) + 1;
  // A thread that QEMU was not started with does not come with a disk.
  const hasThread = ioThread !== undefined && plan.ioThreads.includes(ioThread);
  const queues = wanted.bus === 'virtio' && { queues: 1 };
  const disk: PlannedDisk = { ...rest, node, place, ...queues, ...(hasThread && { ioThread }) };
  return { plan: { ...plan, disks: [...disks, disk] }, disk };
}

/** The plan without the disk; of a drive, without its medium. */
export function unplugDisk(plan: MachinePlan, name: string): MachinePlan {
  const disks = numbered(plan).flatMap((disk) =>
    disk.name !== name ? [disk] : disk.kind === 'cdrom' ? [{ ...disk, hasVolume: false }] : [],
  );
  return { ...plan, disks };
}
