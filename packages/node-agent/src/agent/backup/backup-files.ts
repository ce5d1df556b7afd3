/**
 * The files of a backup of a guest, in the claim that receives it: `claims/CLAIM/backups/UID/`, with `backup.json` and one
 * qcow2 file for each volume, `0.qcow2`, `1.qcow2`. Nothing is named by text of a user. A directory appears whole or not at
 * all.
 */
import { mkdir, open, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { syncDirectory } from '../../image/atomic-file.ts';
import { imageText, type LayerChain, qemuImg, rebaseLayer } from '../../storage/layer-files.ts';
import type { VolumeDisk } from '../../storage/pool.ts';

export const BACKUPS = 'backups';
/** Copying what a guest has written takes hours on a slow disk, and may be stopped at any time. */
const COPY_MS = 24 * 3_600_000;
const BLOCK_BYTES = 512;

/** `backup.json`. */
export interface BackupNote {
  readonly version: 1;
  readonly namespace: string;
  readonly backup: string;
  readonly checkpoint: string;
  /** Checkpoint that incremental files build on. */
  readonly base?: string;
  readonly volumes: readonly { readonly name: string; readonly file: string; readonly type: 'Full' | 'Incremental' }[];
}

/** Begins the directory of a backup; what an earlier attempt left of it goes. */
export async function beginFiles(claimDirectory: string, uid: string): Promise<string> {
  const directory = join(claimDirectory, BACKUPS, `${uid}.partial`);
  await rm(directory, { recursive: true, force: true });
  await mkdir(directory, { recursive: true, mode: 0o700 });
  return directory;
}

/** Puts the directory in its place. */
export async function finishFiles(claimDirectory: string, uid: string, note: BackupNote): Promise<void> {
  const partial = join(claimDirectory, BACKUPS, `${uid}.partial`);
  await writeFile(join(partial, 'backup.json'), `${JSON.stringify(note)}\n`, { mode: 0o600 });
  for (const { file } of [...note.volumes, { file: 'backup.json' }]) {
    const handle = await open(join(partial, file), 'r+');
    await handle.chmod(0o600);
    await handle.sync().finally(() => handle.close());
  }
  await syncDirectory(partial);
  await rm(join(claimDirectory, BACKUPS, uid), { recursive: true, force: true });
  await rename(partial, join(claimDirectory, BACKUPS, uid));
  await syncDirectory(join(claimDirectory, BACKUPS));
}

/** Removes what was made of a backup that failed. */
export const dropFiles = (claimDirectory: string, uid: string): Promise<void> =>
  rm(join(claimDirectory, BACKUPS, `${uid}.partial`), { recursive: true, force: true });

const chainOf = ({ file, format, backing }: VolumeDisk): LayerChain => ({
  id: '',
  file,
  format,
  ...(backing && { backing: chainOf(backing) }),
});

/** The part of a chain that begins with the layer in `file`; undefined when it lies on no such layer. */
function below(chain: LayerChain | undefined, file: string): LayerChain | undefined {
  if (!chain) return undefined;
  return chain.file === file ? chain : below(chain.backing, file);
}

/**
 * Writes a snapshot as one qcow2 file: all of it, or what has changed since `base` where the snapshot lies on that one.
 * Throws PoolError.
 */
export async function writeVolume(
  file: string,
  {
    snapshot,
    base,
    signal,
  }: { readonly snapshot: VolumeDisk; readonly base?: VolumeDisk; readonly signal: AbortSignal },
): Promise<'Full' | 'Incremental'> {
  const top = chainOf(snapshot);
  const known = base && below(top.backing, base.file);
  const convert = ['convert', '-q', '-U', '-O', 'qcow2'];
  if (!known || !top.backing) {
    await qemuImg([...convert, imageText(top), file], signal, COPY_MS);
    return 'Full';
  }
  // Over a backing file only what the upper layer holds is copied; the layers between follow.
  const under = ['-B', top.backing.file, '-F', top.backing.format];
  await qemuImg([...convert, ...under, imageText(top), file], signal, COPY_MS);
  if (known.file !== top.backing.file)
    await rebaseLayer({ id: '', file, format: 'qcow2', backing: top.backing }, known, signal);
  // Whoever restores it says what it lies on.
  await qemuImg(['rebase', '-q', '-u', '-f', 'qcow2', '-b', '', file], signal);
  return 'Incremental';
}

/** Bytes of a file on the disk. */
export const bytesOnDisk = async (file: string): Promise<number> => (await stat(file)).blocks * BLOCK_BYTES;
