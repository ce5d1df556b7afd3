/**
 * Does KVM run guest code here? There are hosts where /dev/kvm opens and a guest then hangs for ever, so the only
 * honest test is to run some. A few instructions at the reset vector are not enough (they run on such a host too): the
 * probe boots the real firmware, which must find a disk, load its boot sector and deliver a timer interrupt. Nor is that:
 * where processors cannot virtualise, KVM interprets guests instruction by instruction, and stops at the first that it
 * does not know. So the sector goes to protected mode and returns from an interrupt there, which no processor of the last
 * twenty years leaves to KVM and which KVM itself cannot do; then it ends QEMU by the debug-exit device.
 */
import { access, constants, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { run } from '../../base/process/run.ts';

export interface KvmVerdict {
  readonly works: boolean;
  readonly why: string;
}

const SECTOR = 512;
/** One cylinder's worth: firmware dislikes smaller disks. */
const DISK_SIZE = 1024 * 1024;
/** What the guest writes to the debug-exit port; QEMU ends with (value << 1) | 1. */
const VALUE = 0x15;
const EXIT_CODE = (VALUE << 1) | 1;
/** A healthy host needs a quarter of a second; a broken one pays this once a boot. */
const LIMIT_MS = 2000;

/** Where firmware loads the boot sector. */
const LOADED = 0x7c00;
const GDT = 0x40;
const GDT_POINTER = 0x60;
const AFTER_IRET = 0x30;
const CODE_SELECTOR = 0x08;
const DATA_SELECTOR = 0x10;

/** Bytes of a number, lowest first. */
const word = (value: number): readonly number[] => [value & 0xff, value >> 8];
const long = (value: number): readonly number[] => [...word(value & 0xffff), 0, 0];

/** The disk whose boot sector needs a timer interrupt, protected mode and `iret` in it. */
export function probeDisk(): Uint8Array {
  const disk = new Uint8Array(DISK_SIZE);
  const real = [
    ...[0xfb, 0xf4, 0xfa], // sti; hlt; cli: waits for the timer interrupt
    ...[0x31, 0xc0, 0x8e, 0xd8], // xor ax, ax; mov ds, ax
    ...[0x0f, 0x01, 0x16, ...word(LOADED + GDT_POINTER)], // lgdt
    ...[0x0f, 0x20, 0xc0, 0x0c, 0x01, 0x0f, 0x22, 0xc0], // mov eax, cr0; or al, 1; mov cr0, eax
  ];
  const jump = [0xea, ...word(LOADED + real.length + 5), ...word(CODE_SELECTOR)]; // jmp far to the next instruction
  const protectedMode = [
    ...[0x66, 0xb8, ...word(DATA_SELECTOR), 0x8e, 0xd8, 0x8e, 0xd0], // mov ax, data; mov ds, ax; mov ss, ax
    ...[0xbc, ...long(LOADED)], // mov esp, below the sector
    ...[0x9c, 0x0e, 0x68, ...long(LOADED + AFTER_IRET), 0xcf], // pushf; push cs; push AFTER_IRET; iret
  ];
  disk.set([...real, ...jump, ...protectedMode]);
  disk.set([0xb0, VALUE, 0xe6, 0xf4, 0xeb, 0xfe], AFTER_IRET); // mov al, VALUE; out 0xf4, al; jmp $
  const flat = (access: number): number[] => [0xff, 0xff, 0, 0, 0, access, 0xcf, 0];
  disk.set([...flat(0x9a), ...flat(0x92)], GDT + 8); // after the null descriptor: code, data
  disk.set([...word(3 * 8 - 1), ...long(LOADED + GDT)], GDT_POINTER);
  disk.set([0x55, 0xaa], SECTOR - 2);
  return disk;
}

/** Boots the probe disk under one accelerator; true when its code ran. */
export async function runsGuestCode(
  binary: string,
  accelerator: 'kvm' | 'tcg',
  options: { readonly directory: string; readonly signal: AbortSignal; readonly limitMs?: number },
): Promise<KvmVerdict> {
  const directory = await mkdtemp(join(options.directory, 'probe-'));
  try {
    await writeFile(join(directory, 'disk'), probeDisk(), { mode: 0o600 });
    const result = await run(
      [
        binary,
        ...[
          '-machine',
          'q35',
          '-accel',
          accelerator,
          '-m',
          '32M',
          '-nodefaults',
          '-no-user-config',
          '-display',
          'none',
        ],
        ...['-blockdev', '{"driver":"raw","node-name":"d","file":{"driver":"file","filename":"disk"}}'],
        ...['-device', '{"driver":"virtio-blk-pci","drive":"d","bootindex":1}'],
        ...['-device', 'isa-debug-exit,iobase=0xf4,iosize=0x01'],
      ],
      { signal: options.signal, timeoutMs: options.limitMs ?? LIMIT_MS, cwd: directory },
    );
    options.signal.throwIfAborted();
    if (!result.ok && result.code === EXIT_CODE) return { works: true, why: 'guest code ran' };
    return { works: false, why: result.ok ? 'the guest ended without running its code' : result.message.slice(0, 300) };
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** The verdict on KVM. Never throws but for the signal. */
export async function probeKvm(
  binary: string,
  options: { readonly directory: string; readonly signal: AbortSignal },
): Promise<KvmVerdict> {
  try {
    await access('/dev/kvm', constants.R_OK | constants.W_OK);
  } catch {
    return { works: false, why: '/dev/kvm cannot be opened' };
  }
  return runsGuestCode(binary, 'kvm', options);
}
