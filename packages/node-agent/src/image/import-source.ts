/** What people hand to an import by mistake, each reported in one line with what to do instead. */
import { open } from 'node:fs/promises';

const HEAD_BYTES = 4096;
const PACKED: readonly { readonly name: string; readonly unpack: string; readonly magic: readonly number[] }[] = [
  { name: 'gzip', unpack: 'gunzip -k', magic: [0x1f, 0x8b, 0x08] },
  { name: 'xz', unpack: 'unxz -k', magic: [0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00] },
  { name: 'zstd', unpack: 'unzstd', magic: [0x28, 0xb5, 0x2f, 0xfd] },
  { name: 'bzip2', unpack: 'bunzip2 -k', magic: [0x42, 0x5a, 0x68] },
  { name: 'zip', unpack: 'unzip', magic: [0x50, 0x4b, 0x03, 0x04] },
];

/** True for text that names a resource of the network and no file. */
export const isUrl = (source: string): boolean => /^[a-z][a-z0-9+.-]*:\/\//i.test(source);

/** The refusal of a URL; an import reads files only. */
export const urlMessage = (source: string): string =>
  `${source} is a URL, and import takes a file: download it (curl -LO ${source}) and import that; an image of a registry needs no import, name it in containerDisk.image`;

/** Looks at the file of a disk before it is copied. Throws an Error of one line; what cannot be read is left to the copy. */
export async function checkDiskSource(source: string): Promise<void> {
  if (isUrl(source)) throw new Error(urlMessage(source));
  const file = await open(source, 'r').catch(() => undefined);
  if (!file) return;
  try {
    const found = await file.stat();
    if (found.isDirectory()) throw new Error(`${source} is a directory; name the disk image in it`);
    if (!found.isFile() && !found.isBlockDevice()) throw new Error(`${source} is not a file; name a disk image`);
    const head = new Uint8Array(HEAD_BYTES);
    const { bytesRead } = await file.read(head, 0, HEAD_BYTES, 0);
    const start = head.subarray(0, bytesRead);
    const packed = PACKED.find(({ magic }) => magic.every((byte, i) => start[i] === byte));
    if (packed) throw new Error(`${source} is packed with ${packed.name}; unpack it first: ${packed.unpack} ${source}`);
    if (found.size > 0 && isText(start))
      throw new Error(
        `${source} is a text file and no disk image; import takes raw and qcow2 images (a page of an error, saved as a file, looks like this)`,
      );
  } finally {
    await file.close();
  }
}

/** Printable throughout: no disk begins with four kilobytes of that. */
function isText(start: Uint8Array): boolean {
  if (start.some((byte) => byte < 0x09 || (byte > 0x0d && byte < 0x20 && byte !== 0x1b) || byte === 0x7f)) return false;
  try {
    // A character may be cut at the end of what was read.
    new TextDecoder('utf-8', { fatal: true }).decode(start, { stream: true });
    return true;
  } catch {
    return false;
  }
}
