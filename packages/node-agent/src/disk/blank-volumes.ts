/** Empty disks, and disk images of the host (behind their gate). */
import { realpath } from 'node:fs/promises';
import { basename, dirname, isAbsolute, join } from 'node:path';
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { quantityToBytes } from '@coracle/apimachinery/quantity/quantity';
import type { Volume } from '@coracle/kubevirt/kinds/kinds';
import type { DiskFile } from '../qemu/argv.ts';
import { createQcow2 } from './empty-image.ts';
import { createRawImage, rawImageSize } from './raw-image.ts';
import { failedMount, type VolumeRequest } from './volume-request.ts';

const MIB = 1024 * 1024;

/** A fresh qcow2 file of the capacity, rounded down to 1 MiB. */
export async function emptyDisk(request: VolumeRequest, volume: DeepReadonly<Volume>, file: string): Promise<DiskFile> {
  const bad = (why: string): Error => failedMount(volume.name, why);
  const size = Math.floor(bytesOf(volume.emptyDisk?.capacity, bad) / MIB) * MIB;
  if (size < MIB) throw bad('capacity is less than 1Mi');
  await createQcow2(request, file, { size });
  return { file, format: 'qcow2' };
}

/** What the API takes as an amount may be more than a file can have. */
function bytesOf(amount: string | number | undefined, bad: (why: string) => Error): number {
  try {
    return quantityToBytes(String(amount ?? 0));
  } catch (error) {
    throw bad(`capacity ${(error as Error).message}`);
  }
}

/** A raw image of the host. The path must lie, with all links resolved, below one of the roots the operator named. */
export async function hostDisk(request: VolumeRequest, volume: DeepReadonly<Volume>): Promise<DiskFile> {
  const source = volume.hostDisk;
  const bad = (why: string): Error => failedMount(volume.name, why);
  if (request.hostDiskRoots.length === 0)
    throw bad('hostDisk is switched off on this node; name the allowed directories in its configuration');
  const path = source?.path ?? '';
  if (!isAbsolute(path) || path.includes('\0') || ['', '.', '..'].includes(basename(path)))
    throw bad('hostDisk.path must be an absolute path of a file');
  const parent = await realpath(dirname(path)).catch(() => undefined);
  const roots = await Promise.all(request.hostDiskRoots.map((root) => realpath(root).catch(() => undefined)));
  if (parent === undefined || !roots.some((root) => root !== undefined && `${parent}/`.startsWith(`${root}/`)))
    throw bad('hostDisk.path does not lie below an allowed directory of this node');
  const file = join(parent, basename(path));
  const present = await rawImageSize(file).catch((error: Error) => {
    throw bad(`hostDisk.path ${error.message}`);
  });
  if (present === undefined) {
    if (source?.type !== 'DiskOrCreate') throw bad('the image of hostDisk does not exist');
    const size = Math.ceil(bytesOf(source.capacity, bad) / MIB) * MIB;
    if (size < MIB) throw bad('hostDisk.capacity is needed to create the image');
    await createRawImage(file, size).catch((error: Error) => {
      throw bad(`the image of hostDisk could not be made with ${source.capacity}: ${error.message}`);
    });
  }
  return { file, format: 'raw' };
}
