/** Archives of files, as bytes that come one after the other (POSIX.1-2001: ustar, with pax headers for long names). */

export interface TarMember {
  readonly name: string;
  readonly bytes: number;
  /** Exactly so many; anything else makes no archive. */
  readonly chunks: () => AsyncIterable<Uint8Array>;
}

const BLOCK = 512;
const NAME_BYTES = 100;
/** Eleven octal digits. Larger ones are written in base 256, as GNU tar does. */
const OCTAL_MAX = 8 ** 11;

/** The archive. Throws when a member has more or fewer bytes than it said. */
export async function* tarOf(members: readonly TarMember[]): AsyncGenerator<Uint8Array> {
  for (const { name, bytes, chunks } of members) {
    if (Buffer.byteLength(name) > NAME_BYTES) {
      const record = paxRecord('path', name);
      yield header('PaxHeader', record.length, 'x');
      yield padded(record);
    }
    yield header(Buffer.from(name).subarray(0, NAME_BYTES).toString('latin1'), bytes, '0');
    let sent = 0;
    for await (const chunk of chunks()) {
      sent += chunk.length;
      if (sent > bytes) break;
      yield chunk;
    }
    if (sent !== bytes) throw new Error(`${name} is not of the size that it was`);
    yield Buffer.alloc((BLOCK - (bytes % BLOCK)) % BLOCK);
  }
  yield Buffer.alloc(2 * BLOCK);
}

/** `LENGTH key=value\n`, where the length counts its own digits. */
function paxRecord(key: string, value: string): Buffer {
  const rest = Buffer.from(` ${key}=${value}\n`);
  let length = rest.length + 1;
  while (String(length).length + rest.length !== length) length = String(length).length + rest.length;
  return Buffer.concat([Buffer.from(String(length)), rest]);
}

const padded = (bytes: Buffer): Buffer =>
  Buffer.concat([bytes, Buffer.alloc((BLOCK - (bytes.length % BLOCK)) % BLOCK)]);

function header(name: string, size: number, type: '0' | 'x'): Buffer {
  const block = Buffer.alloc(BLOCK);
  block.write(name, 0, NAME_BYTES, 'latin1');
  block.write('0000600\0', 100);
  block.write('0000000\0', 108);
  block.write('0000000\0', 116);
  if (size < OCTAL_MAX) block.write(`${size.toString(8).padStart(11, '0')}\0`, 124);
  else {
    block[124] = 0x80;
    block.writeBigUInt64BE(BigInt(size), 128);
  }
  block.write('00000000000\0', 136);
  block.write('        ', 148);
  block.write(type, 156);
  block.write('ustar\x0000', 257, 'latin1');
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return block;
}
