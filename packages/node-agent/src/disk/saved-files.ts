/**
 * The files of a guest that were its own (overlays over images, empty disks, media) when its memory was saved, and how a
 * guest that is resumed gets them: over links to the saved ones, so that nothing is copied and the state may go.
 */
import { constants, copyFile, link, readdir, rm } from 'node:fs/promises';
import { isAbsolute, join } from 'node:path';
import type { PlannedDisk } from '@coracle/kubevirt/rules/machine/machine-plan';
import type { BackingFile, DiskFile } from '../qemu/argv.ts';
import { createQcow2 } from './empty-image.ts';

export interface SavedFiles {
  /** Where the names below lie. */
  readonly directory: string;
  /** By name of the disk. */
  readonly disks: Readonly<Record<string, SavedDisk>>;
  readonly kernel?: string;
  readonly initrd?: string;
}

/** A disk, and the bytes that the guest sees of it. */
export interface SavedDisk extends DiskFile {
  readonly size: number;
}

/** Files below a disk that a saved guest may have: each save and resume adds one. */
export const MAX_LAYERS = 8;

/** The files of a disk, the topmost first. */
export function layersOf(disk: DiskFile): readonly BackingFile[] {
  const layers: BackingFile[] = [];
  for (let at: BackingFile | undefined = disk; at; at = at.backing) layers.push(at);
  return layers;
}

/** Name of a saved layer in the directory of a VM; 0 is the topmost. */
export const SAVED_LAYER = /^disk-\d+\.saved-\d+$/;

/** Removes the layers of an earlier attempt. */
export async function removeLayers(directory: string, prefix: string): Promise<void> {
  for (const name of await readdir(directory))
    if (name.startsWith(`${prefix}.saved-`)) await rm(join(directory, name), { force: true });
}

/** The file of a disk that was saved; undefined when it was not the guest's own. Throws what the file system says. */
export async function savedDisk(
  request: { readonly directory: string; readonly signal: AbortSignal },
  saved: SavedFiles,
  { disk, prefix }: { readonly disk: PlannedDisk; readonly prefix: string },
): Promise<DiskFile | undefined> {
  const source = Object.hasOwn(saved.disks, disk.name) ? saved.disks[disk.name] : undefined;
  if (!source) return undefined;
  let backing: BackingFile | undefined;
  for (const [depth, { file, format }] of [...layersOf(source).entries()].reverse()) {
    const name = `${prefix}.saved-${depth}`;
    await linkFile(isAbsolute(file) ? file : join(saved.directory, file), join(request.directory, name));
    backing = { file: name, format, ...(backing && { backing }) };
  }
  if (!backing) return undefined;
  if (disk.readOnly || source.readOnly) return { ...backing, readOnly: true };
  const file = `${prefix}.qcow2`;
  await createQcow2(request, file, { size: source.size, backing });
  return { file, format: 'qcow2', backing };
}

/** Kernel and initrd of a saved guest, as names in the VM's directory: what its next reboot loads. */
export async function savedKernel(
  request: { readonly directory: string },
  { directory, kernel, initrd }: SavedFiles,
): Promise<{ kernel?: string; initrd?: string }> {
  for (const name of [kernel, initrd])
    if (name !== undefined) await linkFile(join(directory, name), join(request.directory, name));
  return { ...(kernel !== undefined && { kernel }), ...(initrd !== undefined && { initrd }) };
}

/** A second name for a file that nobody writes to any more, and that may go under its first; another file system gets a copy. */
export async function linkFile(from: string, to: string): Promise<void> {
  await rm(to, { force: true });
  try {
    await link(from, to);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'EXDEV' && code !== 'EPERM' && code !== 'EMLINK') throw error;
    await copyFile(from, to, constants.COPYFILE_FICLONE);
  }
}
