/**
 * The files of claims that nobody provisioned, `claims/UID/`: which there are, and their removal once the claim is gone. A
 * directory without a note (of a volume whose policy is Retain, that a provisioner made, or of an older version) is never
 * removed here.
 */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { HeldClaim } from '@coracle/cluster-rules/claims/held-claims';
import { writeFileAtomic } from '../image/atomic-file.ts';
import type { Pool } from '../storage/pool.ts';
import { PoolError } from '../storage/pool-error.ts';
import { isUid } from './vm-directory.ts';

const NOTE = 'claim.json';

interface Note {
  readonly version: 1;
  readonly storageClass: string;
}

/** Writes down that the files go with their claim, by the policy of that class. */
export async function noteClaim(directory: string, storageClass: string): Promise<void> {
  const known = await readNote(directory);
  if (known?.storageClass === storageClass) return;
  await writeFileAtomic(join(directory, NOTE), JSON.stringify({ version: 1, storageClass } satisfies Note));
}

async function readNote(directory: string): Promise<Note | undefined> {
  try {
    const note = JSON.parse(await readFile(join(directory, NOTE), 'utf8')) as Note;
    return note?.version === 1 && typeof note.storageClass === 'string' ? note : undefined;
  } catch {
    return undefined;
  }
}

/** The claims whose files go with them. */
export async function listClaimFiles(claimsDirectory: string): Promise<HeldClaim[]> {
  const held: HeldClaim[] = [];
  for (const name of await readdir(claimsDirectory).catch(() => [])) {
    if (!isUid(name)) continue;
    const note = await readNote(join(claimsDirectory, name));
    if (note) held.push({ uid: name, storageClass: note.storageClass });
  }
  return held;
}

/**
 * Removes the volumes of these claims from the pool. `inUse` are directories that a guest has open: they stay for the next
 * time, as do those of which the pool knows a guest. Resolves to the UIDs whose files have gone.
 */
export async function removeClaimFiles(
  pool: Pick<Pool, 'directory' | 'deleteVolume'>,
  gone: readonly string[],
  inUse: (directory: string) => boolean,
): Promise<string[]> {
  const removed: string[] = [];
  for (const uid of gone) {
    const directory = join(pool.directory, uid);
    // Without a note somebody else says when it goes, or nobody.
    if (!isUid(uid) || inUse(directory) || (await readNote(directory)) === undefined) continue;
    try {
      await pool.deleteVolume({ handle: uid });
      removed.push(uid);
    } catch (error) {
      if (!(error instanceof PoolError)) throw error;
    }
  }
  return removed;
}
