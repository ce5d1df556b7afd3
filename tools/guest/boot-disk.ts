// Writes the disk: boot sector, one FAT16 partition with SYSLINUX, kernel and initrd on it. mtools and SYSLINUX work on
// plain files, so no loop device and no privilege is needed. What the boot sector needs to read kernel and initrd by itself
// (boot-record.ts) is found in the finished file system: nothing else was on it, so each file lies there in one piece.
import { open, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { bootRecord, COMMAND_LINE_ADDRESS } from './boot-record.ts';
import { HEADER } from './fast-kernel.ts';
import { run } from './process.ts';

const SECTOR = 512;
/** The usual 1 MiB before the first partition. */
const FIRST_SECTOR = 2048;
/** Where the boot partition ends, and with it a disk that has no other. */
export const BOOT_BYTES = 64 * 1024 * 1024;
const BOOT_SECTORS = BOOT_BYTES / SECTOR;
const FAT16_LBA = 0x0e;
const LINUX = 0x83;
const ACTIVE = 0x80;
/** Where boot.rst has the two parts of a kernel. */
const [REAL_MODE_ADDRESS, KERNEL_ADDRESS] = [0x90000, 0x100000];

/** What goes on the disk, and where the unpacked host tools are. */
export interface BootDiskOptions {
  readonly kernel: string;
  readonly initrd: string;
  readonly args: string;
  /** A raw disk of at least `BOOT_BYTES` that has a Linux file system behind them; its beginning is overwritten. */
  readonly withRoot?: string;
  /** Root of the unpacked syslinux and mtools packages. */
  readonly tools: string;
  /** For files in between; removed by the caller. */
  readonly scratch: string;
  readonly signal?: AbortSignal | undefined;
}

/** Builds a disk SeaBIOS boots from any bus it can read, as a compressed qcow2 image at `path`. */
export async function writeBootDisk(path: string, options: BootDiskOptions): Promise<void> {
  const { scratch, signal } = options;
  const bin = join(options.tools, 'usr/bin');
  // SYSLINUX calls mtools by name, and mtools must not read the user's configuration.
  const env = { PATH: `${bin}:${process.env['PATH']}`, MTOOLS_SKIP_CHECK: '1', TMPDIR: scratch };
  const partition = join(scratch, 'partition');
  const config = join(scratch, 'syslinux.cfg');
  await writeFile(
    config,
    `DEFAULT tiny\nPROMPT 0\nNOESCAPE 1\nLABEL tiny\n  LINUX vmlinuz\n  INITRD initrd\n  APPEND ${options.args}\n`,
  );

  const sectors = BOOT_SECTORS - FIRST_SECTOR;
  const format = ['-C', '-i', partition, '-T', `${sectors}`, '-h', '255', '-s', '63', '-H', `${FIRST_SECTOR}`];
  await run(join(bin, 'mformat'), [...format, '-c', '64', '-v', 'TINY', '::'], { env, signal });
  await run(join(bin, 'mcopy'), ['-i', partition, config, '::syslinux.cfg'], { env, signal });
  const initrd = await readFile(options.initrd);
  const { kernel, setupLength, initrdAddress } = preparedKernel(await readFile(options.kernel), initrd.length);
  const prepared = join(scratch, 'kernel');
  await writeFile(prepared, kernel);
  await run(join(bin, 'mcopy'), ['-i', partition, prepared, '::vmlinuz'], { env, signal });
  await run(join(bin, 'mcopy'), ['-i', partition, options.initrd, '::initrd'], { env, signal });
  await run(join(bin, 'syslinux'), ['--install', partition], { env, signal });

  const raw = options.withRoot ?? join(scratch, 'disk.raw');
  const disk = await open(raw, options.withRoot === undefined ? 'w' : 'r+', 0o600);
  try {
    const size = Math.max((await disk.stat()).size, BOOT_BYTES);
    const content = await readFile(partition);
    const [kernelAt, initrdAt] = [content.indexOf(kernel), content.indexOf(initrd)];
    if (kernelAt < 0 || initrdAt < kernelAt) throw new Error('the boot file system holds its files in pieces');
    const { code, queue } = bootRecord(
      {
        sector: FIRST_SECTOR + kernelAt / SECTOR,
        parts: [
          { address: REAL_MODE_ADDRESS, length: setupLength },
          { address: KERNEL_ADDRESS, length: initrdAt - kernelAt - setupLength },
          { address: initrdAddress, length: Math.ceil(initrd.length / SECTOR) * SECTOR },
        ],
        commandLine: `${options.args} edd=off BOOT_IMAGE=vmlinuz`,
      },
      FIRST_SECTOR,
    );
    await disk.write(Buffer.concat([bootSector(code, size / SECTOR), queue]), 0, 2 * SECTOR, 0);
    await disk.write(content, 0, content.length, FIRST_SECTOR * SECTOR);
    await disk.truncate(size);
  } finally {
    await disk.close();
  }
  const convert = ['convert', '-f', 'raw', '-O', 'qcow2', '-c', '-o', 'compression_type=zstd', raw, path];
  await run('qemu-img', convert, { signal });
}

/**
 * The kernel with what a boot loader fills in (boot.rst, "The Real-Mode Kernel Header"), and where its initrd goes: behind
 * all that it needs at its start. SYSLINUX fills in its own.
 */
function preparedKernel(
  original: Buffer,
  initrdLength: number,
): { kernel: Buffer; setupLength: number; initrdAddress: number } {
  const kernel = Buffer.from(original);
  const end = Number(kernel.readBigUInt64LE(HEADER.preferredAddress)) + kernel.readUInt32LE(HEADER.initSize);
  const initrdAddress = Math.ceil(end / 4096) * 4096;
  kernel.writeUInt8(0xff, 0x210); // a loader without a number
  kernel.writeUInt8(kernel.readUInt8(0x211) | 0x80, 0x211); // there is a heap,
  kernel.writeUInt16LE(0xde00, 0x224); // which ends under the stack
  kernel.writeUInt32LE(initrdAddress, 0x218);
  kernel.writeUInt32LE(initrdLength, 0x21c);
  kernel.writeUInt32LE(COMMAND_LINE_ADDRESS, 0x228);
  return { kernel, setupLength: (kernel[HEADER.setupSectors]! + 1) * SECTOR, initrdAddress };
}

/** The first sector: code, and the table of the active partition, and of one behind it where the disk goes on. */
function bootSector(code: Buffer, diskSectors: number): Buffer {
  const sector = Buffer.alloc(SECTOR);
  code.copy(sector, 0, 0, 440);
  writePartition(sector.subarray(446, 462), {
    status: ACTIVE,
    type: FAT16_LBA,
    first: FIRST_SECTOR,
    end: BOOT_SECTORS,
  });
  if (diskSectors > BOOT_SECTORS)
    writePartition(sector.subarray(462, 478), { status: 0, type: LINUX, first: BOOT_SECTORS, end: diskSectors });
  sector.writeUInt16LE(0xaa55, 510);
  return sector;
}

/** One entry of the table; `first` and `end` in sectors, `end` not part of it. */
function writePartition(entry: Buffer, partition: { status: number; type: number; first: number; end: number }): void {
  entry[0] = partition.status;
  entry.fill(0xff, 1, 4); // no cylinder/head/sector address: the boot record uses the linear one
  entry[4] = partition.type;
  entry.fill(0xff, 5, 8);
  entry.writeUInt32LE(partition.first, 8);
  entry.writeUInt32LE(partition.end - partition.first, 12);
}
