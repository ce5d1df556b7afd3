/**
 * The timer of frozen guests: a guest that is frozen and forgotten hangs, so it is thawed when its time is over, whether an agent
 * lives by then or not. What is due lies in the directory of each VM; one process for all guests of a node
 * (`thaw-process.ts`) watches that while there is any.
 */
import { readFile, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Clock } from '@coracle/runtime/clock/clock';
import { isRunning, type ProcessIdentity } from '@coracle/runtime/process/identity';
import { listVmDirectories, vmDirectoryOf } from '../../disk/vm-directory.ts';
import { writeFileAtomic } from '../../image/atomic-file.ts';
import { startProgram } from '../../network/start-program.ts';

/** When a guest is to be thawed, in milliseconds since the epoch, and the QEMU that it is in. */
export interface ThawOrder {
  readonly thawAt: number;
  readonly process: ProcessIdentity;
}

const ORDER = 'thaw.json';
/** Beside `vms/`: which process watches. */
const TIMER = 'thaw-process.json';
const HEAP_MIB = 64;
const POLL_MS = 1000;
/** A guest that cannot be thawed for so long has an agent that is gone for good. */
const GIVE_UP_MS = 10 * 60_000;

const timerFile = (vmsDirectory: string): string => join(dirname(vmsDirectory), TIMER);

/** Writes down when the guest of this directory is thawed, and sees to it that somebody does so. Rejects when nobody can. */
export async function orderThaw(directory: string, order: ThawOrder): Promise<void> {
  await writeFileAtomic(join(directory, ORDER), JSON.stringify(order));
  const vmsDirectory = dirname(directory);
  // It takes its name away before it looks for the last time: one that is named here sees what was written before.
  if (await isWatched(vmsDirectory)) return;
  const child = await startProgram('thaw-process', {
    cwd: vmsDirectory,
    heapMiB: HEAP_MIB,
    outputFile: '/dev/null',
  });
  await writeFileAtomic(timerFile(vmsDirectory), JSON.stringify(child.identity));
}

/** The guest stays frozen until somebody thaws it, or has been thawed. */
export const cancelThaw = (directory: string): Promise<void> => rm(join(directory, ORDER), { force: true });

async function isWatched(vmsDirectory: string): Promise<boolean> {
  const timer = await readJson<ProcessIdentity>(timerFile(vmsDirectory));
  return timer !== undefined && isRunning(timer);
}

async function readJson<T>(file: string): Promise<T | undefined> {
  try {
    return JSON.parse(await readFile(file, 'utf8')) as T;
  } catch {
    return undefined;
  }
}

export interface ThawTimerOptions {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Thaws the guest of a directory. */
  readonly thaw: (directory: string) => Promise<void>;
}

/** Thaws what falls due. Resolves when nothing is left to wait for; rejects with the signal alone. */
export async function runThawTimer(vmsDirectory: string, options: ThawTimerOptions): Promise<void> {
  const { clock, signal } = options;
  for (;;) {
    while (await lookOnce(vmsDirectory, options)) await clock.sleep(POLL_MS, signal);
    await rm(timerFile(vmsDirectory), { force: true });
    if (!(await lookOnce(vmsDirectory, options))) return;
  }
}

/** Thaws each guest whose time is over, all at once; true while there are orders. */
async function lookOnce(vmsDirectory: string, { clock, thaw }: ThawTimerOptions): Promise<boolean> {
  const left = await Promise.all(
    (await listVmDirectories(vmsDirectory)).map(async (uid) => {
      const directory = vmDirectoryOf(vmsDirectory, uid);
      const order = await readJson<ThawOrder>(join(directory, ORDER));
      if (!order) return false;
      const late = clock.now() - order.thawAt;
      if (late < 0 && (await isRunning(order.process))) return true;
      const isDone =
        late > GIVE_UP_MS ||
        !(await isRunning(order.process)) ||
        (await thaw(directory).then(
          () => true,
          () => false,
        ));
      // Another order may have come meanwhile.
      const newest = await readJson<ThawOrder>(join(directory, ORDER));
      if (isDone && newest?.thawAt === order.thawAt) await cancelThaw(directory);
      return !isDone || (newest !== undefined && newest.thawAt !== order.thawAt);
    }),
  );
  return left.includes(true);
}
