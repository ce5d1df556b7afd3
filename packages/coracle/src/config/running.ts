/** What a running process says of itself in `running.json`, and whether it is still that process. */
import { rmSync } from 'node:fs';
import { identify, isRunning, type ProcessIdentity } from '@coracle/runtime/process/identity';
import type { DataDir } from './data-dir.ts';
import { readFileIfAny, writePrivateFile } from './write-file.ts';

export interface Running {
  readonly process: ProcessIdentity;
  readonly url: string;
  readonly version: string;
  readonly nodes: readonly string[];
  readonly startedAt: string;
  /** Present once it has been asked to stop. */
  readonly stopping?: Stopping;
}

/** What a process that stops says of it. */
export interface Stopping {
  readonly keepVms: boolean;
  /** How often it was asked to stop. */
  readonly requests: number;
  /** The guests it waits for. */
  readonly guests: readonly AwaitedGuest[];
}

/** A guest that was asked to shut down. */
export interface AwaitedGuest {
  /** `NAMESPACE/NAME`. */
  readonly name: string;
  /** When its grace period ends: ms since the epoch. */
  readonly until: number;
}

/** At most so many guests are named in one line. */
const MAX_NAMED = 10;

/** `default/tiny (23 s left), default/other (5 s left)`. `now` in ms since the epoch. */
export function awaitedText(guests: readonly AwaitedGuest[], now: number): string {
  const named = guests.slice(0, MAX_NAMED).map(({ name, until }) => {
    const seconds = Math.ceil((until - now) / 1000);
    return `${name} (${seconds > 0 ? `${seconds} s left` : 'being ended'})`;
  });
  return [...named, ...(guests.length > MAX_NAMED ? [`${guests.length - MAX_NAMED} more`] : [])].join(', ');
}

/** The live process of this data directory, or undefined. A file left behind by a dead process counts as none. Throws when the directory is none. */
export async function findRunning(dir: DataDir): Promise<Running | undefined> {
  let text: string | undefined;
  try {
    text = readFileIfAny(dir.running);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOTDIR') throw error;
    throw new Error(`${dir.root} is not a directory; choose another one with --data-dir DIR`);
  }
  if (text === undefined) return undefined;
  try {
    const running = JSON.parse(text) as Running;
    return (await isRunning(running.process)) ? running : undefined;
  } catch {
    return undefined; // half a file from another time: nobody to talk to
  }
}

/** Publishes this process as the one that holds the directory. */
export async function publishRunning(dir: DataDir, running: Omit<Running, 'process'>): Promise<void> {
  const self = await identify(process.pid);
  if (!self) throw new Error('cannot read /proc/self: is /proc mounted?');
  writePrivateFile(dir.running, `${JSON.stringify({ process: self, ...running })}\n`);
}

/** Adds to what this process has published that it is stopping. */
export function publishStopping(dir: DataDir, stopping: Stopping): void {
  const text = readFileIfAny(dir.running);
  if (text === undefined) return;
  writePrivateFile(dir.running, `${JSON.stringify({ ...(JSON.parse(text) as Running), stopping })}\n`);
}

/** Takes the publication back. */
export const withdrawRunning = (dir: DataDir): void => rmSync(dir.running, { force: true });
