/** Writes a zip file in memory (PKWARE APPNOTE 6.3.10): deflated entries, names in UTF-8, no more than 4 GiB. */
import { crc32, deflateRawSync } from 'node:zlib';

export interface ZipEntry {
  /** With `/`. */
  readonly name: string;
  readonly text: string;
}

const UTF8_NAMES = 0x0800;
const DEFLATE = 8;
const VERSION = 20;
const MAX_ENTRIES = 0xffff;

/**
 * The bytes of the file; `modified` is shown as the time of each entry, in UTC.
 * @throws RangeError when there are more entries than the format holds
 */
export function zipFile(entries: readonly ZipEntry[], modified: Date): Buffer {
  if (entries.length > MAX_ENTRIES)
    throw new RangeError(`a zip file holds ${MAX_ENTRIES} entries, not ${entries.length}`);
  const stamp = dosTime(modified);
  const parts: Buffer[] = [];
  const directory: Buffer[] = [];
  let offset = 0;
  for (const { name, text } of entries) {
    const plain = Buffer.from(text, 'utf8');
    const packed = deflateRawSync(plain);
    const path = Buffer.from(name, 'utf8');
    // From "version needed" to "extra field length": the same bytes in both places.
    const common = Buffer.alloc(26);
    common.writeUInt16LE(VERSION, 0);
    common.writeUInt16LE(UTF8_NAMES, 2);
    common.writeUInt16LE(DEFLATE, 4);
    common.writeUInt32LE(stamp, 6);
    common.writeUInt32LE(crc32(plain), 10);
    common.writeUInt32LE(packed.length, 14);
    common.writeUInt32LE(plain.length, 18);
    common.writeUInt16LE(path.length, 22);
    const local = Buffer.concat([signature(0x04034b50), common, path, packed]);
    // Made by version 2.0; no comment, first disk, a file of its owner alone.
    const tail = Buffer.alloc(14);
    tail.writeUInt32LE((0o100600 << 16) >>> 0, 6);
    tail.writeUInt32LE(offset, 10);
    const madeBy = Buffer.from([VERSION, 3]);
    directory.push(Buffer.concat([signature(0x02014b50), madeBy, common, tail, path]));
    parts.push(local);
    offset += local.length;
  }
  const listing = Buffer.concat(directory);
  const end = Buffer.alloc(18);
  end.writeUInt16LE(entries.length, 4);
  end.writeUInt16LE(entries.length, 6);
  end.writeUInt32LE(listing.length, 8);
  end.writeUInt32LE(offset, 12);
  return Buffer.concat([...parts, listing, signature(0x06054b50), end]);
}

function signature(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

/** Time in the low, date in the high sixteen bits; two seconds are the finest. */
function dosTime(at: Date): number {
  const time = (at.getUTCHours() << 11) | (at.getUTCMinutes() << 5) | (at.getUTCSeconds() >> 1);
  const date = ((at.getUTCFullYear() - 1980) << 9) | ((at.getUTCMonth() + 1) << 5) | at.getUTCDate();
  return ((date << 16) | time) >>> 0;
}
