/**
 * The files of a backup directory, and how they are opened: only regular files that lie where they should, never through a
 * link.
 *
 * `manifest.json` and `manifest.sha256` (as sha256sum writes it); `data/PATH`: files kept whole; `maps/N`: the map of the
 * Nth chunked file; `chunks/XX/SHA256`: chunks, each named by its digest.
 */
import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, lstat, open } from 'node:fs/promises';
import { join } from 'node:path';
import { BackupError } from './backup-error.ts';
import { MAX_MANIFEST_BYTES, type Manifest, parseManifest } from './manifest.ts';

export const MANIFEST = 'manifest.json';
export const MANIFEST_DIGEST = 'manifest.sha256';

/** Path of a chunk below the backup. */
export const chunkPath = (digest: string): string => `chunks/${digest.slice(0, 2)}/${digest}`;
/** Path of the map of the chunked file of that index. */
export const mapPath = (index: number): string => `maps/${index}`;
/** Path of a file that is kept whole. */
export const wholePath = (path: string): string => `data/${path}`;

export const sha256 = (data: Uint8Array | string): string => createHash('sha256').update(data).digest('hex');

/** Opens a file of a backup for reading. Throws BackupError when it is missing, no regular file, or behind a link. */
export async function openInside(root: string, path: string): Promise<FileHandle> {
  const parts = path.split('/');
  for (let length = 1; length <= parts.length; length++) {
    const name = parts.slice(0, length).join('/');
    const found = await lstat(join(root, name)).catch((error: NodeJS.ErrnoException) => {
      throw new BackupError(error.code === 'ENOENT' ? `${name} is missing` : `${name}: ${error.message}`);
    });
    const isRight = length === parts.length ? found.isFile() : found.isDirectory();
    if (!isRight)
      throw new BackupError(
        `${name} is not a ${length === parts.length ? 'regular file' : 'directory'}; it is not read`,
      );
  }
  return open(join(root, path), constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
}

/** The whole of a small file. Throws BackupError, also when it is larger than `most`. */
export async function readInside(root: string, path: string, most: number): Promise<Buffer> {
  const file = await openInside(root, path);
  try {
    const { size } = await file.stat();
    if (size > most) throw new BackupError(`${path} is ${size} bytes large, more than ${most}`);
    return await file.readFile();
  } finally {
    await file.close();
  }
}

/** Reads the manifest of a backup, checked against its digest. Throws BackupError. */
export async function readManifest(root: string): Promise<Manifest> {
  const found = await lstat(root).catch(() => undefined);
  if (!found?.isDirectory()) throw new BackupError(`${root} is not a directory`);
  if (!(await lstat(join(root, MANIFEST)).catch(() => undefined)))
    throw new BackupError(`${root} is not a backup: it has no ${MANIFEST}`);
  const text = await readInside(root, MANIFEST, MAX_MANIFEST_BYTES);
  const wanted = (await readInside(root, MANIFEST_DIGEST, 1024)).toString('latin1').slice(0, 64);
  if (wanted !== sha256(text)) throw new BackupError(`${MANIFEST} is damaged: it does not fit ${MANIFEST_DIGEST}`);
  return parseManifest(text.toString('utf8'));
}

/** Size and SHA-256 of a file, read in pieces. */
export async function digestFile(path: string): Promise<{ readonly bytes: number; readonly sha256: string }> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    return await digestOf(file);
  } finally {
    await file.close();
  }
}

/** The same of an open file. */
export async function digestOf(file: FileHandle): Promise<{ readonly bytes: number; readonly sha256: string }> {
  const hash = createHash('sha256');
  let bytes = 0;
  for await (const part of file.createReadStream({ autoClose: false, highWaterMark: 1024 * 1024 })) {
    hash.update(part as Buffer);
    bytes += (part as Buffer).length;
  }
  return { bytes, sha256: hash.digest('hex') };
}
