/**
 * As much of the NBD protocol as reading takes (NetworkBlockDevice/nbd, doc/proto.md): the fixed newstyle handshake with
 * NBD_OPT_GO for the export without a name, then NBD_CMD_READ with simple replies, one at a time. The far end is a qemu-nbd that
 * this process started.
 */
import type { Socket } from 'node:net';

const MAGIC = Buffer.from('NBDMAGIC');
const OPTION_MAGIC = Buffer.from('IHAVEOPT');
const REPLY_MAGIC = 0x0003e889045565a9n;
const FIXED_NEWSTYLE = 1;
const NO_ZEROES = 2;
const OPT_GO = 7;
const REP_ACK = 1;
const REP_INFO = 3;
const INFO_EXPORT = 0;
const REQUEST_MAGIC = 0x25609513;
const SIMPLE_REPLY_MAGIC = 0x67446698;
const CMD_READ = 0;
const CMD_DISC = 2;
/** Of one reply in the handshake; an error message is a sentence. */
const MAX_REPLY_BYTES = 64 * 1024;

export interface NbdClient {
  /** Bytes of the disk. */
  readonly size: number;
  /** Throws Error when the disk cannot be read there, or the connection ends. */
  read(offset: number, length: number): Promise<Buffer>;
  /** Ends the connection; the server of one client ends with it. */
  close(): void;
}

/** Takes over a connected socket. */
export async function connectNbd(socket: Socket): Promise<NbdClient> {
  const take = reader(socket);
  const greeting = await take(18);
  if (!greeting.subarray(0, 8).equals(MAGIC) || !greeting.subarray(8, 16).equals(OPTION_MAGIC))
    throw new Error('what answers speaks no NBD');
  const go = Buffer.alloc(4 + 16 + 6);
  go.writeUInt32BE(FIXED_NEWSTYLE | (greeting.readUInt16BE(16) & NO_ZEROES), 0);
  OPTION_MAGIC.copy(go, 4);
  go.writeUInt32BE(OPT_GO, 12);
  // An empty name, and no more information than there is anyway.
  go.writeUInt32BE(6, 16);
  socket.write(go);
  let size: number | undefined;
  for (;;) {
    const head = await take(20);
    const [type, length] = [head.readUInt32BE(12), head.readUInt32BE(16)];
    if (head.readBigUInt64BE(0) !== REPLY_MAGIC || length > MAX_REPLY_BYTES) throw new Error('an NBD reply is none');
    const data = await take(length);
    if (type === REP_ACK) break;
    if (type === REP_INFO && data.readUInt16BE(0) === INFO_EXPORT) size = Number(data.readBigUInt64BE(2));
    else if (type !== REP_INFO) throw new Error('the NBD server offers no disk');
  }
  if (size === undefined || !Number.isSafeInteger(size)) throw new Error('the NBD server tells no size');
  return {
    size,
    async read(offset, length) {
      socket.write(request(CMD_READ, offset, length));
      const head = await take(16);
      if (head.readUInt32BE(0) !== SIMPLE_REPLY_MAGIC) throw new Error('an NBD reply is none');
      const code = head.readUInt32BE(4);
      if (code !== 0) throw new Error(`the disk cannot be read at ${offset} (NBD error ${code})`);
      return take(length);
    },
    close() {
      if (socket.writable) socket.end(request(CMD_DISC, 0, 0));
      socket.destroySoon();
    },
  };
}

function request(type: number, offset: number, length: number): Buffer {
  const bytes = Buffer.alloc(28);
  bytes.writeUInt32BE(REQUEST_MAGIC, 0);
  bytes.writeUInt16BE(type, 6);
  bytes.writeBigUInt64BE(BigInt(offset), 16);
  bytes.writeUInt32BE(length, 24);
  return bytes;
}

/** Takes exactly so many bytes; more than that stays in the buffer of the socket. */
function reader(socket: Socket): (length: number) => Promise<Buffer> {
  return async (length) => {
    const parts: Buffer[] = [];
    let left = length;
    while (left > 0) {
      // All of what is there: `read(n)` gives nothing until n bytes are, and so many may never fit the buffer.
      const part = socket.read(Math.min(left, Math.max(1, socket.readableLength))) as Buffer | null;
      if (part) {
        parts.push(part);
        left -= part.length;
        continue;
      }
      await new Promise<void>((resolve, reject) => {
        const done = (error?: Error): void => {
          for (const [name, listener] of listeners) socket.off(name, listener);
          if (error) reject(error);
          else resolve();
        };
        const ended = (error?: unknown): void =>
          done(error instanceof Error ? error : new Error('the reader of the disk has ended'));
        const listeners = [
          ['readable', () => done()],
          ['end', ended],
          ['close', ended],
          ['error', ended],
        ] as const;
        if (socket.destroyed || socket.readableEnded) return ended();
        for (const [name, listener] of listeners) socket.on(name, listener);
      });
    }
    return parts.length === 1 ? parts[0]! : Buffer.concat(parts, length);
  };
}
