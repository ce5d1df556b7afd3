// The master boot record: reads kernel and initrd with one request of the whole length to the virtio disk, straight to where they
// run, and starts the kernel. A BIOS reads such a disk in pieces of 32 KiB, each with waiting and changes of processor mode, which
// on an emulated CPU takes longer than the kernel needs to start. Any other disk boots as usual: by the boot sector of the
// partition, which is SYSLINUX's.
//
// What surprises: the request lies ready on the disk, in the sector behind this one, laid out as the queue that the device reads
// (virtio 1.2, "Legacy Interface"); the parameters of boot.rst are in the kernel's own header. After it the BIOS can no longer
// use the disk, so the kernel must not ask it (edd=off).
import { op } from './fast-kernel.ts';

/** What has to be read: sectors of the disk that follow each other, and how many bytes of them go where. */
export interface BootRead {
  readonly sector: number;
  readonly parts: readonly { readonly address: number; readonly length: number }[];
  readonly commandLine: string;
}

/** Where the second sector is read to; the queue's other parts lie behind it. */
const QUEUE = 0x20000;
const [REQUEST, STATUS, COMMAND_LINE] = [0xa0, 0xb0, 0xc0];
/** Where the kernel finds its command line. */
export const COMMAND_LINE_ADDRESS = QUEUE + COMMAND_LINE;
const [NEXT, WRITTEN_BY_DEVICE] = [1, 2];

/** The code of the first sector, 440 bytes at most, and the second sector. `partition` is the sector of the one to boot else. */
export function bootRecord(read: BootRead, partition: number): { code: Buffer; queue: Buffer } {
  const end = Math.max(...read.parts.map(({ address, length }) => address + length));
  const blocks = Math.ceil(end / 65536) + 16 - 256; // of 64 KiB behind 16 MiB, with 1 MiB left for the BIOS's tables
  return { code: Buffer.concat(code(blocks, partition)), queue: queue(read) };
}

function queue({ sector, parts, commandLine }: BootRead): Buffer {
  const bytes = Buffer.alloc(512);
  const chain = [
    { address: QUEUE + REQUEST, length: 16, flags: NEXT },
    ...parts.map((part) => ({ ...part, flags: NEXT | WRITTEN_BY_DEVICE })),
    { address: QUEUE + STATUS, length: 1, flags: WRITTEN_BY_DEVICE },
  ];
  chain.forEach(({ address, length, flags }, i) => {
    bytes.writeBigUInt64LE(BigInt(address), i * 16);
    bytes.writeUInt32LE(length, i * 16 + 8);
    bytes.writeUInt16LE(flags, i * 16 + 12);
    bytes.writeUInt16LE(flags & NEXT ? i + 1 : 0, i * 16 + 14);
  });
  if (chain.length * 16 > REQUEST) throw new Error(`a boot disk is read in ${parts.length} parts: too many`);
  bytes.writeBigUInt64LE(BigInt(sector), REQUEST + 8); // type 0 before it: read
  bytes[STATUS] = 0xff;
  if (COMMAND_LINE + commandLine.length >= 512) throw new Error('the command line of the boot disk is too long');
  bytes.write(commandLine, COMMAND_LINE, 'latin1');
  return bytes;
}

function code(blocks: number, partition: number): Buffer[] {
  return [
    op('fa 31 c0 8e d0 bc 00 7c 8e d8 8e c0'), //   cli; ss:sp = 0:0x7c00; ds = es = 0
    op('89 e6 bf 00 06 b9 00 01 fc f3 a5'), //      copy this sector to 0x600
    op('ea 1c 06 00 00'), //                        jmp 0:0x61c           ; the next line, over there
    op('fb 52'), //                                 sti; push dx          ; the drive
    op('be 33 07 b4 42 cd 13 72 62'), //            int 0x13, 0x42: read the queue; jc slow
    op('be 00 70 c7 04 42 00'), //                  mov si, 0x7000; mov [si], 66
    op('b4 48 cd 13 72 55'), //                     int 0x13, 0x48: drive parameters; jc slow
    op('66 81 7c 24 50 43 49 20 75 4b'), //         cmp [si+36], "PCI "; jne slow
    op('b8 01 e8 cd 15'), //                        int 0x15, 0xe801: memory
    op(`81 fa ${hex16(blocks)} 72 40`), //          cmp dx, blocks; jb slow
    op('66 0f b6 44 30 66 c1 e0 10'), //            movzx eax, [si+48]    ; bus; shl eax, 16
    op('8a 64 31 c0 e4 03 0a 64 32'), //            mov ah, [si+49]       ; slot; shl ah, 3; or ah, [si+50] ; function
    op('66 0f ba e8 1f 66 89 c1'), //               bts eax, 31; mov ecx, eax
    op('ba f8 0c 66 ef b2 fc 66 ed'), //            read its configuration's first word
    op('66 3d f4 1a 01 10 75 15'), //               cmp eax, virtio-blk; jne slow
    op('66 91 b0 10 b2 f8 66 ef b2 fc 66 ed'), //   read where its ports are
    op('a8 01 74 05 83 e0 fc 75 14'), //            test al, 1; jz slow; and ax, -4; jnz fast
    //                                          slow:
    op('5a be 43 07 b4 42 cd 13'), //               pop dx; int 0x13, 0x42: read the partition's boot sector
    op('0f 82 9b 00'), //                           jc halt
    op('be be 07 ea 00 7c 00 00'), //               mov si, its entry in the table; jmp 0:0x7c00
    //                                          fast:
    op('93 68 00 20 07'), //                        mov bx, ports; mov es, queue
    op('8d 57 12 66 31 c0 ee b0 03 ee'), //         status: reset, then driver is here
    op('8d 57 04 31 c0 66 ef'), //                  no features
    op('8d 57 0e ef 8d 57 0c ed'), //               select queue 0, and get its size
    op('89 c7 c1 e7 04'), //                        mov di, ax; shl di, 4 ; where the requests are named:
    op('26 66 c7 05', 0x10001), //                  no interrupt; one of them,
    op('26 c7 45 04 00 00'), //                     the first
    op('01 c0 01 c7 81 c7 05 10 81 e7 00 f0'), //   di: the next page, where the device answers
    op('26 66 c7 05', 0), //                        none yet
    op('8d 57 08 66 b8', QUEUE / 4096), //          address of the queue
    op('66 ef'),
    op('8d 57 12 b0 07 ee'), //                     status: driver is ready
    op('b0 34 e6 43 b0 00 e6 40 b0 10 e6 40'), //   let the timer tick each 3.4 ms,
    op('8d 57 10 31 c0 ef'), //                     notify
    op('f4 90 26 80 7d 02 00 74 f7'), //         1: hlt; nop; cmp [di+2], 0; je 1b ; and sleep from tick to tick
    op('8d 57 12 ee'), //                           status: reset
    op('26 80 3e b0 00 00 75 16'), //               cmp [status of the request], 0; jne halt
    op('fa b8 00 90 8e d8 8e c0 8e e0 8e e8'), //   cli; ds, es, fs, gs and
    op('8e d0 bc 00 e0'), //                        ss:sp as boot.rst wants them
    op('ea 00 00 20 90'), //                        jmp 0x9020:0          ; the kernel's real-mode part
    op('f4 eb fd'), //                        halt: hlt; jmp halt
    // What int 0x13 reads, at 0x733 and 0x743: one sector, to segment and offset.
    op('10 00 01 00 00 00 00 20', 1, 0),
    op('10 00 01 00 00 7c 00 00', partition, 0),
  ];
}

function hex16(value: number): string {
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16LE(value);
  return bytes.toString('hex');
}
