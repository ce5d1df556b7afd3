/** Ends a pull before the disk that it fills has no room left for the node itself: whose image it is says how large it is. */
import { statfs } from 'node:fs/promises';
import { type DiskSpace, diskFloor } from '@coracle/kubevirt/rules/machine/disk-room';
import type { Clock } from '@coracle/runtime/clock/clock';

const LOOK_MS = 250;

/** Space of the file system of a directory. */
export async function spaceOf(directory: string): Promise<DiskSpace> {
  const { bavail, bsize, blocks } = await statfs(directory);
  return { free: bavail * bsize, total: blocks * bsize };
}

const MIB = 1024 ** 2;

/** Looks at once, and from then on four times a second until it is stopped. */
export async function guardDisk(
  directory: string,
  options: { readonly space: () => Promise<DiskSpace>; readonly clock: Clock; readonly signal: AbortSignal },
) {
  const full = new AbortController();
  let problem: string | undefined;
  let before: number | undefined;
  let cancel = (): void => {};
  let isStopped = false;
  const look = async (): Promise<void> => {
    const { free, total } = await options.space();
    const { pressure } = diskFloor(total);
    // What it took since the look before, it may take until the next one.
    const next = free - Math.max(0, (before ?? free) - free);
    before = free;
    if (next >= pressure) return;
    problem = `the disk of ${directory} has ${Math.floor(free / MIB)} MiB free, of which the node keeps ${Math.ceil(pressure / MIB)}; free some there`;
    full.abort(new Error(problem));
  };
  const plan = (): void => {
    if (isStopped || full.signal.aborted) return;
    cancel = options.clock.schedule(LOOK_MS, async () => {
      await look().catch(() => {});
      plan();
    });
  };
  await look();
  plan();
  return {
    /** Aborted when there is no room, and with the signal that was given. */
    signal: AbortSignal.any([options.signal, full.signal]),
    /** Why it ended the pull; undefined when it did not. */
    problem: () => problem,
    stop(): void {
      isStopped = true;
      cancel();
    },
  };
}
