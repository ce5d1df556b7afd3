/**
 * Saved guests on disk: `memory/STATE/` with `state.json`, `ram` (QEMU's stream of memory and devices) and the guest's
 * own disks. Mode 0700 and 0600: memory holds every secret of the guest. A state is there whole or not at all.
 */
import { mkdir, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { MachinePlan } from '@coracle/kubevirt/rules/machine/machine-plan';
import type { SavedHost } from '@coracle/kubevirt/rules/memory-state/resume-plan';
import { createDeferred } from '@coracle/runtime/signal/deferred';
import type { SavedDisk, SavedFiles } from '../../disk/saved-files.ts';
import { isUid, vmDirectoryOf } from '../../disk/vm-directory.ts';
import { syncDirectory, writeFileAtomic } from '../../image/atomic-file.ts';

/** `state.json`. */
export interface SavedState {
  readonly version: 1;
  readonly state: string;
  readonly namespace: string;
  readonly vmi: string;
  readonly vmiUid: string;
  /** RFC 3339. */
  readonly savedAt: string;
  readonly pauseMs: number;
  /** Of `ram`. */
  readonly bytes: number;
  readonly plan: MachinePlan;
  readonly host: SavedHost;
  readonly imageIds: Readonly<Record<string, string>>;
  readonly disks: Readonly<Record<string, SavedDisk>>;
  readonly kernel?: string;
  readonly initrd?: string;
}

export const RAM_FILE = 'ram';
const STATE_FILE = 'state.json';
const MAKING = '.making-';
const GONE = '.gone-';
const USED = 'used-';

/** Being written by an agent of this process: agents of one host share the directory. */
const underWay = new Set<string>();

let saved = createDeferred();

/** Resolves when an agent of this process has saved a guest: what was looked for in vain may be there. */
export const nextState = (): Promise<void> => saved.promise;

/** Makes an empty directory for a state that is to be written. */
export async function beginState(memoryDirectory: string, state: string): Promise<string> {
  if (!isUid(state)) throw new Error(`${JSON.stringify(state.slice(0, 64))} is not a UID`);
  const making = join(memoryDirectory, `${MAKING}${state}`);
  if (underWay.has(making)) throw new Error('this state is being saved');
  underWay.add(making);
  try {
    await mkdir(memoryDirectory, { recursive: true, mode: 0o700 });
    await rm(making, { recursive: true, force: true });
    await mkdir(making, { mode: 0o700 });
    return making;
  } catch (error) {
    underWay.delete(making);
    throw error;
  }
}

/** Makes it a state: from here on it is there, also after a power cut. */
export async function commitState(memoryDirectory: string, making: string, whole: SavedState): Promise<void> {
  await writeFileAtomic(join(making, STATE_FILE), JSON.stringify(whole));
  await rename(making, join(memoryDirectory, whole.state));
  await syncDirectory(memoryDirectory);
  underWay.delete(making);
  saved.resolve();
  saved = createDeferred();
}

/** Removes what was written of a state that came to nothing. */
export async function abandonState(making: string): Promise<void> {
  await rm(making, { recursive: true, force: true });
  underWay.delete(making);
}

/** The state of that UID; undefined when there is none, or it is not what we wrote. */
export async function readState(memoryDirectory: string, state: string): Promise<SavedState | undefined> {
  if (!isUid(state)) return undefined;
  try {
    const saved = JSON.parse(await readFile(join(memoryDirectory, state, STATE_FILE), 'utf8')) as SavedState;
    const sound =
      saved.version === 1 &&
      saved.state === state &&
      typeof saved.namespace === 'string' &&
      typeof saved.plan?.uuid === 'string' &&
      typeof saved.host?.qemuVersion === 'string';
    return sound ? saved : undefined;
  } catch {
    return undefined;
  }
}

/** Where QEMU's stream of a state lies. */
export const ramFile = (memoryDirectory: string, state: string): string =>
  join(vmDirectoryOf(memoryDirectory, state), RAM_FILE);

/** Its directory. Throws on anything that is not a UID. */
export const stateDirectory = vmDirectoryOf;

/** The files of it, for the disks of a guest that is resumed. */
export const savedFilesOf = (memoryDirectory: string, saved: SavedState): SavedFiles => ({
  directory: stateDirectory(memoryDirectory, saved.state),
  disks: saved.disks,
  ...(saved.kernel !== undefined && { kernel: saved.kernel }),
  ...(saved.initrd !== undefined && { initrd: saved.initrd }),
});

/** The states there are. */
export async function listStates(memoryDirectory: string): Promise<SavedState[]> {
  const names = await readdir(memoryDirectory).catch(() => [] as string[]);
  const states = await Promise.all(names.map((name) => readState(memoryDirectory, name)));
  return states.filter((saved) => saved !== undefined);
}

/** Removes a state. Disks of guests that were resumed from it are links of theirs, and stay. */
export async function removeState(memoryDirectory: string, state: string): Promise<void> {
  const gone = join(memoryDirectory, `${GONE}${state}`);
  // Out of the way in one step: nobody finds half of it, also after a crash.
  await rename(stateDirectory(memoryDirectory, state), gone).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error;
  });
  await rm(gone, { recursive: true, force: true });
}

/** Removes what crashes left: states that were not finished, and those half removed. */
export async function sweepStates(memoryDirectory: string): Promise<void> {
  for (const name of await readdir(memoryDirectory).catch(() => [] as string[])) {
    const path = join(memoryDirectory, name);
    if ((name.startsWith(MAKING) && !underWay.has(path)) || name.startsWith(GONE))
      await rm(path, { recursive: true, force: true });
  }
}

/** Who used the state under that name: UID of the instance; undefined when nobody did. */
export async function userOf(memoryDirectory: string, state: string, ticket: string): Promise<string | undefined> {
  const path = join(stateDirectory(memoryDirectory, state), `${USED}${ticket}`);
  return readFile(path, 'utf8').catch(() => undefined);
}

/** Writes down that an instance goes on from it: before it runs, so that no second one does over the same disks. */
export const markUsed = (memoryDirectory: string, state: string, ticket: string, vmiUid: string): Promise<void> =>
  writeFileAtomic(join(stateDirectory(memoryDirectory, state), `${USED}${ticket}`), vmiUid);

/** Bytes that the files of a state take on the disk. */
export async function stateBytes(memoryDirectory: string, state: string): Promise<number> {
  const directory = stateDirectory(memoryDirectory, state);
  let bytes = 0;
  for (const name of await readdir(directory).catch(() => [] as string[]))
    bytes += await stat(join(directory, name)).then(
      ({ blocks, nlink }) => (nlink > 1 ? 0 : blocks * 512),
      () => 0,
    );
  return bytes;
}
