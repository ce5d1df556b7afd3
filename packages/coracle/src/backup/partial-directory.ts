/**
 * A directory that appears whole or not at all: it is made beside its place, under a name of its own, and renamed. What a
 * crash leaves of one is removed by the next that is made for the same place.
 */
import { lstatSync, readdirSync } from 'node:fs';
import { mkdir, open, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { syncDirectory } from '@coracle/node-agent/image/atomic-file';
import { identify, isRunning, type ProcessIdentity } from '@coracle/runtime/process/identity';
import { makePrivateDirs } from '../config/data-dir.ts';
import { BackupError } from './backup-error.ts';

export interface PartialDirectory {
  /** Where its content is made. */
  readonly path: string;
  /** Makes all that is in it durable and puts it in its place. Throws BackupError when that has been taken meanwhile. */
  finish(): Promise<void>;
  /** Removes it. */
  discard(): Promise<void>;
}

const OWNER = 'owner.json';

/** Throws BackupError unless nothing, or an empty directory, is at `place`. */
export function refuseTaken(place: string, what: string): void {
  const found = lstatSync(place, { throwIfNoEntry: false });
  if (!found) return;
  if (!found.isDirectory()) throw new BackupError(`${place} already exists and is not a directory; ${what}`);
  if (readdirSync(place).length > 0) throw new BackupError(`${place} is not empty; ${what}`);
}

/** Begins a directory for `place`. Throws BackupError when the place is taken, or another process makes one for it. */
export async function beginPartial(place: string, what: string): Promise<PartialDirectory> {
  const target = resolve(place);
  refuseTaken(target, what);
  const parent = dirname(target);
  makePrivateDirs(parent);
  const work = join(parent, `.${basename(target)}.partial`);
  const self = await identify(process.pid);
  await mkdir(work, { mode: 0o700 }).catch(async (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error;
    const owner = await readOwner(work);
    if (owner && (await isRunning(owner)))
      throw new BackupError(`the process with pid ${owner.pid} is at work on ${target}; wait for it`);
    await rm(work, { recursive: true, force: true });
    await mkdir(work, { mode: 0o700 });
  });
  await writeFile(join(work, OWNER), JSON.stringify(self ?? {}), { mode: 0o600 });
  const path = join(work, 'content');
  await mkdir(path, { mode: 0o700 });
  return {
    path,
    async finish() {
      await syncTree(path);
      await rename(path, target).catch((error: NodeJS.ErrnoException) => {
        if (error.code === 'EBUSY' || error.code === 'EXDEV')
          throw new BackupError(`${target} is a mount point; choose a directory below it`);
        if (error.code === 'ENOTEMPTY' || error.code === 'EEXIST')
          throw new BackupError(`${target} was created by another process meanwhile; it is not changed`);
        throw error;
      });
      await syncDirectory(parent);
      await rm(work, { recursive: true, force: true });
    },
    discard: () => rm(work, { recursive: true, force: true }),
  };
}

async function readOwner(work: string): Promise<ProcessIdentity | undefined> {
  try {
    const owner = JSON.parse(await readFile(join(work, OWNER), 'utf8')) as ProcessIdentity;
    return typeof owner.pid === 'number' ? owner : undefined;
  } catch {
    return undefined;
  }
}

/** Makes every file and name below a directory durable. Done at the end: by then most of it is on the disk. */
async function syncTree(path: string): Promise<void> {
  for (const entry of await readdir(path, { withFileTypes: true })) {
    const at = join(path, entry.name);
    if (entry.isDirectory()) await syncTree(at);
    else {
      const file = await open(at, 'r');
      await file.sync().finally(() => file.close());
    }
  }
  await syncDirectory(path);
}
