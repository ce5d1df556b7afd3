/**
 * Looks at the first bytes of an untrusted disk image before any tool opens it. A qcow2 file can name other files of
 * the host (backing file, external data file); such an image is refused here, and tools are always given the format.
 */
import { open } from 'node:fs/promises';

interface DiskFormat {
  readonly format: 'raw' | 'qcow2';
  /** Bytes the guest sees. */
  readonly virtualSize: number;
}

/** Largest disk accepted, 16 TiB: more is a broken or hostile header. */
export const MAX_VIRTUAL_SIZE = 16 * 1024 ** 4;
const SECTOR = 512;
const HEADER_BYTES = 64 * 1024;
const QCOW2_MAGIC = 0x514649fb;
const EXTENSION_END = 0;
const EXTENSION_BACKING_FORMAT = 0xe2792aca;
const EXTENSION_DATA_FILE = 0x44415441;
const INCOMPATIBLE_CORRUPT = 1n << 1n;
const INCOMPATIBLE_DATA_FILE = 1n << 2n;
/** Those two, a dirty bitmap of reference counts, another compression, and extended L2 entries. */
const INCOMPATIBLE_KNOWN = 0b11111n;

/** Formats that a user may well hand us by mistake; named in the error instead of booted as garbage. */
const FOREIGN: readonly { readonly name: string; readonly at: number; readonly magic: readonly number[] }[] = [
  { name: 'VMDK', at: 0, magic: [0x4b, 0x44, 0x4d, 0x56] },
  { name: 'VHDX', at: 0, magic: [...'vhdxfile'].map((c) => c.charCodeAt(0)) },
  { name: 'VDI', at: 0x40, magic: [0x7f, 0x10, 0xda, 0xbe] },
  { name: 'QED', at: 0, magic: [0x51, 0x45, 0x44, 0x00] },
  { name: 'gzip', at: 0, magic: [0x1f, 0x8b, 0x08] },
  { name: 'xz', at: 0, magic: [0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00] },
  { name: 'zstd', at: 0, magic: [0x28, 0xb5, 0x2f, 0xfd] },
];

/** Decides what `head` (the first 64 KiB) of a file of `fileSize` bytes is. Throws, saying why, when it is not usable. */
export function inspectDiskHeader(head: Uint8Array, fileSize: number): DiskFormat {
  if (fileSize === 0) throw new Error('the disk image is empty');
  const view = new DataView(head.buffer, head.byteOffset, head.byteLength);
  if (head.length >= 4 && view.getUint32(0) === QCOW2_MAGIC) return inspectQcow2(view);
  for (const { name, at, magic } of FOREIGN) {
    if (magic.every((byte, i) => head[at + i] === byte))
      throw new Error(`the disk image is ${name}; only raw and qcow2 are accepted (convert it with qemu-img convert)`);
  }
  if (fileSize > MAX_VIRTUAL_SIZE) throw new Error(`the disk image is larger than ${MAX_VIRTUAL_SIZE} bytes`);
  return { format: 'raw', virtualSize: Math.ceil(fileSize / SECTOR) * SECTOR };
}

function inspectQcow2(view: DataView): DiskFormat {
  const bad = (why: string): Error => new Error(`the qcow2 image is refused: ${why}`);
  if (view.byteLength < 72) throw bad('its header is cut off');
  const version = view.getUint32(4);
  if (version !== 2 && version !== 3) throw bad(`version ${version} is not 2 or 3`);
  if (view.getBigUint64(8) !== 0n || view.getUint32(16) !== 0) throw bad('it names a backing file');
  const clusterBits = view.getUint32(20);
  if (clusterBits < 9 || clusterBits > 21) throw bad(`its cluster size 2^${clusterBits} is out of range`);
  const size = view.getBigUint64(24);
  if (size === 0n || size > BigInt(MAX_VIRTUAL_SIZE)) throw bad(`its virtual size ${size} is out of range`);
  if (view.getUint32(32) !== 0) throw bad('it is encrypted');
  // One L1 entry maps clusterSize/8 clusters; QEMU itself allows at most 32 MiB of L1 table.
  const l1Entries = view.getUint32(36);
  if (l1Entries > (32 * 1024 * 1024) / 8) throw bad('its L1 table is too large');
  let headerLength = 72;
  if (version === 3) {
    if (view.byteLength < 104) throw bad('its header is cut off');
    const incompatible = view.getBigUint64(72);
    if (incompatible & INCOMPATIBLE_DATA_FILE) throw bad('it names an external data file');
    if (incompatible & INCOMPATIBLE_CORRUPT) throw bad('it is marked corrupt');
    if (incompatible & ~INCOMPATIBLE_KNOWN) throw bad(`it needs unknown features (0x${incompatible.toString(16)})`);
    headerLength = view.getUint32(100);
    if (headerLength < 104 || headerLength > 4096 || headerLength % 8 !== 0) throw bad('its header length is wrong');
  }
  checkExtensions(view, headerLength, bad);
  return { format: 'qcow2', virtualSize: Number(size) };
}

/** Header extensions stand between the header and the first cluster; each is padded to 8 bytes. */
function checkExtensions(view: DataView, from: number, bad: (why: string) => Error): void {
  const end = Math.min(view.byteLength, 1 << view.getUint32(20));
  for (let at = from; at + 8 <= end; ) {
    const type = view.getUint32(at);
    const length = view.getUint32(at + 4);
    if (type === EXTENSION_END) return;
    if (type === EXTENSION_DATA_FILE) throw bad('it names an external data file');
    if (type === EXTENSION_BACKING_FORMAT) throw bad('it names a backing format');
    if (length > end - at - 8) throw bad('a header extension runs over its cluster');
    at += 8 + Math.ceil(length / 8) * 8;
  }
}

/** Reads and validates the file at `path`. */
export async function inspectDisk(path: string): Promise<DiskFormat> {
  const file = await open(path, 'r');
  try {
    const { size } = await file.stat();
    const head = new Uint8Array(Math.min(HEADER_BYTES, size));
    let got = 0;
    while (got < head.length) {
      const { bytesRead } = await file.read(head, got, head.length - got, got);
      if (bytesRead === 0) break;
      got += bytesRead;
    }
    return inspectDiskHeader(head.subarray(0, got), size);
  } finally {
    await file.close();
  }
}
