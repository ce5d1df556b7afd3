/**
 * What a file from elsewhere is, by its own bytes, before any tool opens it. Formats that can name other files of the
 * host are looked through for that (backing files, external data, extents), and refused.
 */
import { type FileHandle, open } from 'node:fs/promises';
import { inspectDiskHeader, MAX_VIRTUAL_SIZE } from '../image/disk-header.ts';
import { FillError } from './fill-error.ts';

export type Packing = 'gzip' | 'xz' | 'zstd';

export type ImageFormat =
  | { readonly type: 'packed'; readonly packing: Packing }
  | { readonly type: 'raw'; readonly virtualSize: number }
  | { readonly type: 'foreign'; readonly format: 'qcow2' | 'vmdk' | 'vdi'; readonly virtualSize: number };

const HEAD_BYTES = 64 * 1024;
const SECTOR = 512;
const PACKINGS: readonly (readonly [Packing, readonly number[]])[] = [
  ['gzip', [0x1f, 0x8b, 0x08]],
  ['xz', [0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00]],
  ['zstd', [0x28, 0xb5, 0x2f, 0xfd]],
];
/** Other containers that people offer by mistake; as raw disks they would boot as garbage. */
const REFUSED: readonly (readonly [name: string, magic: readonly number[]])[] = [
  ['a bzip2 file', [0x42, 0x5a, 0x68]],
  ['a zip archive', [0x50, 0x4b, 0x03, 0x04]],
  ['a VMDK descriptor, which names other files', bytesOf('# Disk DescriptorFile')],
  ['an ESX sparse extent', bytesOf('COWD')],
  ['an OVA or tar archive', []],
];
const VDI_MAGIC = 0xbeda107f;
const VDI_MAGIC_AT = 0x40;
/** QEMU reads so much of a descriptor inside a VMDK, looking for the name of a parent. */
const DESCRIPTOR_BYTES = 20 * SECTOR;

function bytesOf(text: string): number[] {
  return [...text].map((character) => character.charCodeAt(0));
}

/** The packing that the first bytes of a file show. */
export const packingOf = (head: Uint8Array): Packing | undefined =>
  PACKINGS.find(([, magic]) => startsWith(head, magic))?.[0];

const startsWith = (head: Uint8Array, magic: readonly number[]): boolean =>
  magic.length > 0 && magic.every((byte, at) => head[at] === byte);

/** Looks at a file. Throws FillError for what is no disk image, or one that could reach beyond itself. */
export async function imageFormat(path: string): Promise<ImageFormat> {
  const file = await open(path, 'r');
  try {
    const { size } = await file.stat();
    const head = await readAt(file, 0, Math.min(HEAD_BYTES, size));
    const packing = packingOf(head);
    if (packing) return { type: 'packed', packing };
    const text = (at: number, length: number): string => Buffer.from(head.subarray(at, at + length)).toString('latin1');
    const refused = text(257, 5) === 'ustar' ? REFUSED.at(-1) : REFUSED.find(([, magic]) => startsWith(head, magic));
    if (refused) throw new FillError('Image', `the source is ${refused[0]} and no disk image`);
    const view = new DataView(head.buffer, head.byteOffset, head.byteLength);
    if (text(0, 4) === 'KDMV') return await vmdk(file, view);
    if (view.byteLength >= 0x200 && view.getUint32(VDI_MAGIC_AT, true) === VDI_MAGIC) return vdi(view);
    if (size > 0 && isText(head.subarray(0, 4096)))
      throw new FillError('Image', 'the source is a text file and no disk image (a page of an error looks like this)');
    const { format, virtualSize } = inspectDiskHeader(head, size);
    return format === 'raw' ? { type: 'raw', virtualSize } : { type: 'foreign', format, virtualSize };
  } catch (error) {
    if (error instanceof FillError || (error as NodeJS.ErrnoException).code !== undefined) throw error;
    throw new FillError('Image', error instanceof Error ? error.message : String(error), { cause: error });
  } finally {
    await file.close();
  }
}

/** Header of a sparse VMDK (VMware's Virtual Disk Format 5.0, SparseExtentHeader): little-endian, sizes in sectors. */
async function vmdk(file: FileHandle, view: DataView): Promise<ImageFormat> {
  const bad = (why: string): FillError => new FillError('Image', `the vmdk image is refused: ${why}`);
  if (view.byteLength < SECTOR) throw bad('its header is cut off');
  const version = view.getUint32(4, true);
  if (version < 1 || version > 3) throw bad(`version ${version} is not known`);
  const capacity = view.getBigUint64(12, true);
  // Such a file is but a descriptor, which names others.
  if (capacity === 0n) throw bad('it names other files');
  const virtualSize = capacity * BigInt(SECTOR);
  if (virtualSize > BigInt(MAX_VIRTUAL_SIZE)) throw bad(`its virtual size ${virtualSize} is out of range`);
  const descriptorAt = view.getBigUint64(28, true) * BigInt(SECTOR);
  if (descriptorAt > 0n) {
    if (descriptorAt > BigInt(MAX_VIRTUAL_SIZE)) throw bad('its descriptor is out of range');
    const descriptor = await readAt(file, Number(descriptorAt), DESCRIPTOR_BYTES);
    if (/parentFileNameHint/i.test(Buffer.from(descriptor).toString('latin1'))) throw bad('it names a parent');
  }
  return { type: 'foreign', format: 'vmdk', virtualSize: Number(virtualSize) };
}

/** Header of a VDI (VirtualBox, VDICore.h, version 1.1): little-endian. */
function vdi(view: DataView): ImageFormat {
  const bad = (why: string): FillError => new FillError('Image', `the vdi image is refused: ${why}`);
  if (view.getUint32(0x44, true) !== 0x00010001) throw bad('only version 1.1 is known');
  const type = view.getUint32(0x4c, true);
  if (type !== 1 && type !== 2) throw bad('it is a difference to another image');
  const virtualSize = view.getBigUint64(0x170, true);
  if (virtualSize === 0n || virtualSize > BigInt(MAX_VIRTUAL_SIZE))
    throw bad(`its virtual size ${virtualSize} is out of range`);
  if (view.getUint32(0x178, true) !== 1024 * 1024) throw bad('its blocks are not 1 MiB large');
  return { type: 'foreign', format: 'vdi', virtualSize: Number(virtualSize) };
}

async function readAt(file: FileHandle, at: number, length: number): Promise<Uint8Array> {
  const bytes = new Uint8Array(length);
  let got = 0;
  while (got < length) {
    const { bytesRead } = await file.read(bytes, got, length - got, at + got);
    if (bytesRead === 0) break;
    got += bytesRead;
  }
  return bytes.subarray(0, got);
}

/** Printable throughout: no disk begins with four kilobytes of that. */
function isText(start: Uint8Array): boolean {
  return !start.some((byte) => byte < 0x09 || (byte > 0x0d && byte < 0x20 && byte !== 0x1b) || byte >= 0x7f);
}
