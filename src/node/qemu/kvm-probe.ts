/**
 * Does KVM run guest code here? There are hosts where /dev/kvm opens and a guest then hangs for ever, so the only
 * honest test is to run some. A few instructions at the reset vector are not enough (they run on such a host too): the
 * probe boots the real firmware, which must find a disk, load its boot sector and deliver a timer interrupt; the sector
 * then ends QEMU by the debug-exit device.
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

/** A boot sector: `sti; hlt` (waits for the timer interrupt), `mov al, VALUE; out 0xf4, al; jmp $`. */
export function probeDisk(): Uint8Array {
  const disk = new Uint8Array(DISK_SIZE);
  disk.set([0xfb, 0xf4, 0xb0, VALUE, 0xe6, 0xf4, 0xeb, 0xfe]);
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
