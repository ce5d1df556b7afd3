/**
 * Does KVM run guest code here? There are hosts where /dev/kvm opens and a guest then hangs for ever, so the only
 * honest test is to run some, in two machines that their code ends by the debug-exit device:
 * - `startCode` in place of the firmware goes to protected mode and returns from an interrupt there. Where processors
 *   cannot virtualise, KVM interprets guests instruction by instruction and knows no `iret` in that mode: a few simple
 *   instructions run there too, even all of the firmware, and the guest stands still after that. This costs such a host
 *   next to nothing, where the firmware keeps it busy for seconds.
 * - `probeDisk` makes the real firmware find a disk, load its boot sector and deliver a timer interrupt.
 */
import { access, constants, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { run } from '@coracle/runtime/process/run';

interface KvmProbeResult {
  readonly works: boolean;
  readonly why: string;
}

/** The reason where there is no KVM, or this user may not use it. */
export const CANNOT_OPEN = '/dev/kvm cannot be opened';

const SECTOR = 512;
/** One cylinder's worth: firmware dislikes smaller disks. */
const DISK_SIZE = 1024 * 1024;
/** What the guest writes to the debug-exit port; QEMU ends with (value << 1) | 1. */
const VALUE = 0x15;
const EXIT_CODE = (VALUE << 1) | 1;
/** A healthy host needs a quarter of a second; a broken one pays this once a boot. */
const LIMIT_MS = 2000;

/** Ends QEMU: mov al, VALUE; out 0xf4, al; jmp $. */
const END = [0xb0, VALUE, 0xe6, 0xf4, 0xeb, 0xfe];

/** A boot sector: `sti; hlt` (waits for the timer interrupt), then the end. */
function probeDisk(): Uint8Array {
  const disk = new Uint8Array(DISK_SIZE);
  disk.set([0xfb, 0xf4, ...END]);
  disk.set([0x55, 0xaa], SECTOR - 2);
  return disk;
}

const ROM_SIZE = 64 * 1024;
/** Where the last 64 KiB below 4 GiB begin: processors start there. */
const ROM_BASE = 0xffff_0000;
const RESET_VECTOR = 0xfff0;
/** Offsets in the ROM, and memory that every machine has. */
const [PROTECTED, AFTER_IRET, GDT, GDT_POINTER] = [0x40, 0x80, 0xc0, 0xe0];
const STACK_TOP = 0x7000;
const CODE_SELECTOR = 0x08;
const DATA_SELECTOR = 0x10;

const word = (value: number): readonly number[] => [value & 0xff, (value >>> 8) & 0xff];
const long = (value: number): readonly number[] => [...word(value), ...word(value >>> 16)];

/** A ROM that takes the firmware's place: protected mode, `iret` there, then the end. */
function startCode(): Uint8Array {
  const rom = new Uint8Array(ROM_SIZE);
  rom.set([0xe9, ...word(-RESET_VECTOR - 3)], RESET_VECTOR); // jmp to offset 0
  rom.set([
    ...[0x66, 0x2e, 0x0f, 0x01, 0x16, ...word(GDT_POINTER)], // lgdt
    ...[0x0f, 0x20, 0xc0, 0x0c, 0x01, 0x0f, 0x22, 0xc0], // mov eax, cr0; or al, 1; mov cr0, eax
    ...[0x66, 0xea, ...long(ROM_BASE + PROTECTED), ...word(CODE_SELECTOR)], // jmp far
  ]);
  rom.set(
    [
      ...[0x66, 0xb8, ...word(DATA_SELECTOR), 0x8e, 0xd8, 0x8e, 0xd0], // mov ax, data; mov ds, ax; mov ss, ax
      ...[0xbc, ...long(STACK_TOP)], // mov esp
      ...[0x9c, 0x0e, 0x68, ...long(ROM_BASE + AFTER_IRET), 0xcf], // pushf; push cs; push AFTER_IRET; iret
    ],
    PROTECTED,
  );
  rom.set(END, AFTER_IRET);
  const flat = (access: number): number[] => [0xff, 0xff, 0, 0, 0, access, 0xcf, 0];
  rom.set([...flat(0x9b), ...flat(0x93)], GDT + 8); // after the null descriptor: code, data
  rom.set([...word(3 * 8 - 1), ...long(ROM_BASE + GDT)], GDT_POINTER);
  return rom;
}

const DISK = [
  ...['-blockdev', '{"driver":"raw","node-name":"d","file":{"driver":"file","filename":"disk"}}'],
  ...['-device', '{"driver":"virtio-blk-pci","drive":"d","bootindex":1}'],
];

/** Runs both machines under one accelerator; true when their code ran. `limitMs` is for each. */
export async function runsGuestCode(
  binary: string,
  accelerator: 'kvm' | 'tcg',
  options: { readonly directory: string; readonly signal: AbortSignal; readonly limitMs?: number },
): Promise<KvmProbeResult> {
  const directory = await mkdtemp(join(options.directory, 'probe-'));
  const machine = ['-machine', 'q35', '-accel', accelerator, '-m', '32M', '-nodefaults', '-no-user-config'];
  const exit = ['-display', 'none', '-device', 'isa-debug-exit,iobase=0xf4,iosize=0x01'];
  try {
    await writeFile(join(directory, 'rom'), startCode(), { mode: 0o600 });
    await writeFile(join(directory, 'disk'), probeDisk(), { mode: 0o600 });
    for (const own of [['-bios', 'rom'], DISK]) {
      const result = await run([binary, ...machine, ...exit, ...own], {
        signal: options.signal,
        timeoutMs: options.limitMs ?? LIMIT_MS,
        cwd: directory,
      });
      options.signal.throwIfAborted();
      if (result.ok) return { works: false, why: 'the guest ended without running its code' };
      if (result.code !== EXIT_CODE) return { works: false, why: result.message.slice(0, 300) };
    }
    return { works: true, why: 'guest code ran' };
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** Whether KVM runs guest code here. Never throws but for the signal. */
export async function probeKvm(
  binary: string,
  options: { readonly directory: string; readonly signal: AbortSignal },
): Promise<KvmProbeResult> {
  try {
    await access('/dev/kvm', constants.R_OK | constants.W_OK);
  } catch {
    return { works: false, why: CANNOT_OPEN };
  }
  return runsGuestCode(binary, 'kvm', options);
}
