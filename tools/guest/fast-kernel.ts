// Rewraps a distribution's bzImage so that it starts without unpacking itself. Debian's kernel is an XZ stream, and
// unpacking that inside an emulated CPU takes longer than the whole rest of the boot (measured: 5 s against 2 s).
// The result is again a bzImage: the original real-mode part, then a short loader and the kernel as it lies in memory.
// It boots from a boot loader and from `qemu -kernel`, on BIOS only (the EFI stub lived in the part left out).
//
// What surprises: the loader also puts default arguments before the given command line, so that a plain
// `-append console=ttyS0` gets the arguments that make the guest start fast; what the user gives comes later and wins.
// Layout and hand-over follow the kernel's Documentation/arch/x86/boot.rst (32-bit entry in, 64-bit entry out).
import { gunzipSync, zstdDecompressSync } from 'node:zlib';
import { replaceThunks } from './kernel-thunks.ts';
import { run } from './process.ts';

/** Where a boot loader puts the protected-mode part, and our places inside it and behind it. */
const LOAD_ADDRESS = 0x100000;
const LONG_MODE_OFFSET = 0x200;
const GDT_OFFSET = 0x300;
const ARGS_OFFSET = 0x400;
const PAYLOAD_OFFSET = 0x1000;
/** Both lie under the kernel's own address and are free once the payload was moved up. */
const PAGE_TABLES = 0x200000;
const COMMAND_LINE = 0x210000;

/** Offsets in the real-mode header (boot.rst, "The Real-Mode Kernel Header"). */
export const HEADER = {
  setupSectors: 0x1f1,
  systemSize: 0x1f4,
  magic: 0x202,
  relocatable: 0x234,
  extendedFlags: 0x236,
  payloadOffset: 0x248,
  payloadLength: 0x24c,
  preferredAddress: 0x258,
  initSize: 0x260,
  handoverOffset: 0x264,
} as const;

/** Options of `fastKernel`: the program that unpacks XZ, and the arguments put before every command line. */
export interface FastKernelOptions {
  readonly xz: string;
  readonly defaultArgs: string;
  readonly signal?: AbortSignal | undefined;
}

/** Turns a compressed bzImage into one that holds the kernel unpacked; throws when the file is not such a kernel. */
export async function fastKernel(bzImage: Buffer, options: FastKernelOptions): Promise<Buffer> {
  if (bzImage.toString('latin1', HEADER.magic, HEADER.magic + 4) !== 'HdrS') throw new Error('not a Linux bzImage');
  const setupLength = (bzImage[HEADER.setupSectors]! + 1) * 512;
  const start = setupLength + bzImage.readUInt32LE(HEADER.payloadOffset);
  const payload = bzImage.subarray(start, start + bzImage.readUInt32LE(HEADER.payloadLength));
  const elf = await unpack(payload, options);
  replaceThunks(elf);
  const { address, entry, image } = memoryImage(elf);

  const setup = Buffer.from(bzImage.subarray(0, setupLength));
  const kernelEnd = Number(bzImage.readBigUInt64LE(HEADER.preferredAddress)) + bzImage.readUInt32LE(HEADER.initSize);
  setup.writeUInt16LE(0, 0); // no "MZ": the EFI stub is gone
  setup.writeUInt32LE(Math.ceil((PAYLOAD_OFFSET + image.length) / 16), HEADER.systemSize);
  setup.writeUInt8(0, HEADER.relocatable);
  setup.writeUInt16LE(0, HEADER.extendedFlags);
  setup.writeUInt32LE(0, HEADER.payloadOffset);
  setup.writeUInt32LE(0, HEADER.payloadLength);
  setup.writeBigUInt64LE(BigInt(LOAD_ADDRESS), HEADER.preferredAddress);
  setup.writeUInt32LE(kernelEnd - LOAD_ADDRESS, HEADER.initSize); // keeps the initrd clear of the moved kernel
  setup.writeUInt32LE(0, HEADER.handoverOffset);
  return Buffer.concat([setup, loader({ address, entry, length: image.length, args: options.defaultArgs }), image]);
}

async function unpack(payload: Buffer, { xz, signal }: FastKernelOptions): Promise<Buffer> {
  const magic = payload.toString('hex', 0, 4);
  if (magic === '28b52ffd') return zstdDecompressSync(payload);
  if (magic.startsWith('1f8b')) return gunzipSync(payload.subarray(0, -4));
  // The kernel's build appends the unpacked length to the stream.
  if (magic === 'fd377a58') return run(xz, ['-dc', '--single-stream'], { input: payload.subarray(0, -4), signal });
  throw new Error(`the kernel is packed in a way this tool does not know (starts with ${magic})`);
}

/** Lays the loadable segments of the ELF file out as they lie in memory, without the zeros at the end (bss). */
function memoryImage(elf: Buffer): { address: number; entry: number; image: Buffer } {
  if (elf.toString('latin1', 0, 4) !== '\x7fELF') throw new Error('the unpacked kernel is not an ELF file');
  const headers = Number(elf.readBigUInt64LE(0x20));
  const segments: { at: number; data: Buffer }[] = [];
  for (let i = 0; i < elf.readUInt16LE(0x38); i++) {
    const header = elf.subarray(headers + i * 56);
    if (header.readUInt32LE(0) !== 1) continue; // PT_LOAD
    const offset = Number(header.readBigUInt64LE(8));
    const size = Number(header.readBigUInt64LE(32));
    segments.push({ at: Number(header.readBigUInt64LE(24)), data: elf.subarray(offset, offset + size) });
  }
  const address = Math.min(...segments.map((s) => s.at));
  const image = Buffer.alloc(Math.max(...segments.map((s) => s.at + s.data.length)) - address);
  for (const { at, data } of segments) data.copy(image, at - address);
  let end = image.length;
  while (end > 0 && image[end - 1] === 0) end--;
  return { address, entry: Number(elf.readBigUInt64LE(0x18)), image: image.subarray(0, Math.ceil(end / 4) * 4) };
}

interface LoaderPlan {
  readonly address: number;
  readonly entry: number;
  readonly length: number;
  readonly args: string;
}

/** The loader: 32-bit code at the entry, 64-bit code, descriptor table, default arguments, filled to PAYLOAD_OFFSET. */
function loader({ address, entry, length, args }: LoaderPlan): Buffer {
  const defaults = Buffer.from(`${args} `);
  if (defaults.length > PAYLOAD_OFFSET - ARGS_OFFSET) throw new Error('the default kernel arguments are too long');
  const code32 = [
    op('fa'), //                                    cli
    op('89 f5'), //                                 mov ebp, esi          ; the boot parameters
    // Move the kernel up to its address: from its end, because the two places overlap.
    op('fd'), //                                    std
    op('b9', length / 4), //                        mov ecx, words
    op('be', LOAD_ADDRESS + PAYLOAD_OFFSET + length - 4), // mov esi, last word
    op('bf', address + length - 4), //              mov edi, its new place
    op('f3 a5'), //                                 rep movsd
    op('fc'), //                                    cld
    // Command line = default arguments, then what the boot loader gave.
    op('bf', COMMAND_LINE), //                      mov edi, buffer
    op('be', LOAD_ADDRESS + ARGS_OFFSET), //        mov esi, defaults
    op('b9', defaults.length), //                   mov ecx, their length
    op('f3 a4'), //                                 rep movsb
    op('8b b5', 0x228), //                          mov esi, [ebp+cmd_line_ptr]
    op('b0 00 85 f6 74 06'), //                     mov al, 0; test esi, esi; jz 2f
    op('ac aa 84 c0 75 fa'), //                  1: lodsb; stosb; test al, al; jnz 1b
    op('aa'), //                                 2: stosb
    op('c7 85', 0x228, COMMAND_LINE), //            mov [ebp+cmd_line_ptr], buffer
    // Page tables that map the first 4 GiB onto themselves in 2 MiB pages.
    op('31 c0'), //                                 xor eax, eax
    op('bf', PAGE_TABLES), //                       mov edi, tables
    op('b9', 6 * 1024), //                          mov ecx, six pages
    op('f3 ab'), //                                 rep stosd
    op('c7 05', PAGE_TABLES, PAGE_TABLES + 0x1003), // mov [tables], second level
    op('bf', PAGE_TABLES + 0x1000), //              mov edi, second level
    op('b8', PAGE_TABLES + 0x2003), //              mov eax, third level
    op('b1 04'), //                                 mov cl, 4
    op('89 07 05', 0x1000), //                   1: mov [edi], eax; add eax, 0x1000
    op('83 c7 08 e2 f4'), //                        add edi, 8; loop 1b
    op('bf', PAGE_TABLES + 0x2000), //              mov edi, third level
    op('b8', 0x83), //                              mov eax, present | writable | large
    op('b9', 2048), //                              mov ecx, entries
    op('89 07 05', 0x200000), //                 1: mov [edi], eax; add eax, 2 MiB
    op('83 c7 08 e2 f4'), //                        add edi, 8; loop 1b
    // Long mode.
    op('0f 01 15', LOAD_ADDRESS + GDT_OFFSET), //   lgdt
    op('0f 20 e0 83 c8 20 0f 22 e0'), //            cr4 |= PAE
    op('b8', PAGE_TABLES), //                       mov eax, tables
    op('0f 22 d8'), //                              mov cr3, eax
    op('b9', 0xc0000080), //                        mov ecx, EFER
    op('0f 32 0d', 0x100), //                       rdmsr; or eax, LME
    op('0f 30'), //                                 wrmsr
    op('0f 20 c0 0d', 0x80000001), //               cr0 |= PG | PE
    op('0f 22 c0'),
    op('ea', LOAD_ADDRESS + LONG_MODE_OFFSET), //   jmp 0x10:long mode
    op('10 00'),
  ];
  const code64 = [
    op('b8', 0x18), //                              mov eax, data segment
    op('8e d8 8e c0 8e d0'), //                     mov ds, es, ss
    op('89 ee'), //                                 mov esi, ebp          ; boot parameters for the kernel
    op('b8', entry), //                             mov eax, entry
    op('ff e0'), //                                 jmp rax
  ];
  // First the pseudo descriptor lgdt reads (limit, base), then the table at the next 16 bytes:
  // null, unused, 64-bit code at 0x10, data at 0x18 (the selectors boot.rst asks for).
  const descriptors = [
    op('1f 00', LOAD_ADDRESS + GDT_OFFSET + 16),
    Buffer.alloc(10),
    Buffer.alloc(16),
    op('ff ff 00 00 00 9a af 00'),
    op('ff ff 00 00 00 92 cf 00'),
  ];
  const page = Buffer.alloc(PAYLOAD_OFFSET);
  Buffer.concat(code32).copy(page, 0);
  Buffer.concat(code64).copy(page, LONG_MODE_OFFSET);
  Buffer.concat(descriptors).copy(page, GDT_OFFSET);
  defaults.copy(page, ARGS_OFFSET);
  return page;
}

/** Bytes of one instruction (or a few), given in hex, followed by 32-bit little-endian operands. */
export function op(hex: string, ...operands: number[]): Buffer {
  const bytes = Buffer.from(hex.replaceAll(' ', ''), 'hex');
  const words = Buffer.alloc(operands.length * 4);
  operands.forEach((value, i) => {
    words.writeUInt32LE(value >>> 0, i * 4);
  });
  return Buffer.concat([bytes, words]);
}
