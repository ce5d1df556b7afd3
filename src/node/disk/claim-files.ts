/**
 * The files of claims that this host keeps, `claims/UID/`: which there are, and their removal once the claim is gone. A
 * directory without a note (of a volume whose policy is Retain, or of an older version) is never removed.
 */
import { readdir, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { HeldClaim } from '../../domain/claims/held-claims.ts';
import { syncDirectory, writeFileAtomic } from '../image/atomic-file.ts';
import { isUid } from './vm-directory.ts';

const NOTE = 'claim.json';
/** Directories on their way out: what a crash leaves of one goes at the next look. */
const GONE = '.gone-';

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
 * Removes the files of these claims, and what an interrupted removal left. `inUse` are directories that a guest has open:
 * they stay for the next time. Resolves to the UIDs whose files have gone.
 */
export async function removeClaimFiles(
  claimsDirectory: string,
  gone: readonly string[],
  inUse: (directory: string) => boolean,
): Promise<string[]> {
  const removed: string[] = [];
  for (const uid of gone) {
    const directory = join(claimsDirectory, uid);
    if (!isUid(uid) || inUse(directory) || (await readNote(directory)) === undefined) continue;
    // Out of the way in one step: nobody finds half of it, also after a crash.
    await rename(directory, join(claimsDirectory, `${GONE}${uid}`)).then(
      () => removed.push(uid),
      (error: NodeJS.ErrnoException) => {
        if (error.code !== 'ENOENT') throw error;
      },
    );
  }
  if (removed.length > 0) await syncDirectory(claimsDirectory);
  for (const name of await readdir(claimsDirectory).catch(() => []))
    if (name.startsWith(GONE)) await rm(join(claimsDirectory, name), { recursive: true, force: true });
  return removed;
}
