/**
 * `backup.json` in a data directory, while a backup holds snapshots of its volumes: who makes it, and which they are. The
 * next backup removes what a crash left of one.
 */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { isHandle } from '@coracle/node-agent/storage/pool-state';
import { identify, isRunning, type ProcessIdentity } from '@coracle/runtime/process/identity';
import { readFileIfAny, writePrivateFile } from '../config/write-file.ts';
import { BackupError } from './backup-error.ts';

interface Journal {
  readonly process: ProcessIdentity | undefined;
  readonly snapshots: readonly string[];
}

const pathOf = (root: string): string => join(root, 'backup.json');

/** Handles of the snapshots that an earlier backup left. Throws BackupError while another one is being made. */
export async function leftSnapshots(root: string): Promise<readonly string[]> {
  const text = readFileIfAny(pathOf(root));
  if (text === undefined) return [];
  let journal: Journal;
  try {
    journal = JSON.parse(text) as Journal;
  } catch {
    return [];
  }
  if (journal.process && (await isRunning(journal.process)))
    throw new BackupError(`the process with pid ${journal.process.pid} is making a backup of ${root}; wait for it`);
  return Array.isArray(journal.snapshots) ? journal.snapshots.filter(isHandle) : [];
}

/** Writes down which snapshots this process is about to take. */
export async function noteSnapshots(root: string, snapshots: readonly string[]): Promise<void> {
  writePrivateFile(pathOf(root), JSON.stringify({ process: await identify(process.pid), snapshots } satisfies Journal));
}

/** None are left. */
export const forgetSnapshots = (root: string): Promise<void> => rm(pathOf(root), { force: true });
