/** Makes a PNG (RFC 2083) of a binary pixmap (PPM, "P6"), the one picture format that every QEMU writes. */
import { promisify } from 'node:util';
import { crc32, deflate } from 'node:zlib';

const pack = promisify(deflate);
const SIGNATURE = Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a);
const HEADER = /^P6\s+(\d{1,5})\s+(\d{1,5})\s+255\s/;
const MAX_HEADER = 64;
const RGB = 2;

/** Throws when the bytes are no such pixmap. */
export async function pngOfPixmap(pixmap: Uint8Array): Promise<Uint8Array> {
  const header = HEADER.exec(Buffer.from(pixmap.subarray(0, MAX_HEADER)).toString('latin1'));
  const width = Number(header?.[1] ?? 0);
  const height = Number(header?.[2] ?? 0);
  const pixels = pixmap.subarray(header?.[0].length ?? 0);
  const stride = width * 3;
  if (width === 0 || height === 0 || pixels.length !== stride * height) throw new Error('QEMU wrote no pixmap');
  // Each row begins with the number of its filter: none.
  const rows = Buffer.alloc((stride + 1) * height);
  for (let y = 0; y < height; y++) rows.set(pixels.subarray(y * stride, (y + 1) * stride), y * (stride + 1) + 1);
  const size = Buffer.alloc(13);
  size.writeUInt32BE(width, 0);
  size.writeUInt32BE(height, 4);
  size.set([8, RGB, 0, 0, 0], 8);
  return Buffer.concat([
    SIGNATURE,
    chunk('IHDR', size),
    chunk('IDAT', await pack(rows)),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

function chunk(type: string, data: Uint8Array): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const framed = Buffer.alloc(body.length + 8);
  framed.writeUInt32BE(data.length, 0);
  framed.set(body, 4);
  framed.writeUInt32BE(crc32(body), body.length + 4);
  return framed;
}
