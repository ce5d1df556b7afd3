/** The JSON records of the image store: what is written, and a reading that survives damage (a bad record is as if absent). */
import { hash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isDigest } from '@coracle/runtime/oci/reference';
import type { ImageAccess } from './image-access.ts';

/** One file of the store. */
export interface FileEntry {
  readonly digest: string;
  /** Bytes of the file. */
  readonly size: number;
  readonly format: 'raw' | 'qcow2';
  /** Bytes the guest sees; equals `size` for kernels and initrds. */
  readonly virtualSize: number;
}

/** What a guest may need of an image, in the order in which files are listed. */
export const IMAGE_KINDS = ['disk', 'kernel', 'initrd'] as const;
export type ImageKind = (typeof IMAGE_KINDS)[number];
/** At least one of the three. */
export type ImageFiles = { readonly [kind in ImageKind]?: FileEntry };
/** Paths in an image, at least one. The disk: a file, or the directory that holds exactly one; '/disk' for container disks. */
export type WantedFiles = { readonly [kind in ImageKind]?: string };

/** An image whose files are in the store. */
export interface ImageEntry {
  readonly version: 1;
  /** As asked for the first time; `localhost/name:tag` for imported ones. */
  readonly reference: string;
  /** Manifest digest, or the digest of the first file for imported ones. */
  readonly digest: string;
  readonly files: ImageFiles;
  /** How it was pulled; absent for imported images, and in records of older versions: those ask the registry anew. */
  readonly access?: ImageAccess;
  /** ms since the epoch. */
  readonly createdAt: number;
  readonly usedAt: number;
}

/** What a tag pointed at when it was last resolved. */
export interface RefEntry {
  readonly version: 1;
  readonly reference: string;
  readonly digest: string;
}

/** A file name that no text of a user can shape. */
export const entryName = (...key: readonly string[]): string => `${hash('sha256', JSON.stringify(key))}.json`;

/** File name of a digest; throws on anything that is not one. */
export function fileNameOf(digest: string): string {
  if (!isDigest(digest)) throw new Error('not a sha256 digest');
  return digest.replace(':', '-');
}

/** Reads one record, undefined when missing or damaged. */
export async function readEntry<T extends { readonly version: 1; readonly digest: string }>(
  path: string,
): Promise<T | undefined> {
  try {
    const value = JSON.parse(await readFile(path, 'utf8')) as T;
    return value?.version === 1 && isDigest(value.digest) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** All image records of a directory with their paths. */
export async function readImageEntries(
  directory: string,
): Promise<{ readonly path: string; readonly entry: ImageEntry }[]> {
  const result: { path: string; entry: ImageEntry }[] = [];
  for (const name of await readdir(directory)) {
    if (!name.endsWith('.json')) continue;
    const path = join(directory, name);
    const entry = await readEntry<ImageEntry>(path);
    if (entry) result.push({ path, entry });
  }
  return result;
}

/** Records of imported and pulled images of a store, which need not be there; nothing is written. */
export async function storedEntries(
  store: string,
): Promise<{ readonly path: string; readonly entry: ImageEntry; readonly local: boolean }[]> {
  const recordsOf = async (part: 'local' | 'pulled') => {
    const records = await readImageEntries(join(store, part)).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return [];
      throw error;
    });
    return records.map((one) => ({ ...one, local: part === 'local' }));
  };
  return [...(await recordsOf('local')), ...(await recordsOf('pulled'))];
}

export const filesOf = (files: ImageFiles): FileEntry[] => IMAGE_KINDS.flatMap((kind) => files[kind] ?? []);
