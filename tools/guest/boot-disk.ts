// Writes the disk: boot sector, one FAT16 partition with SYSLINUX, kernel and initrd on it. mtools and SYSLINUX work on
// plain files, so no loop device and no privilege is needed.
import { open, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
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

/** What goes on the disk, and where the unpacked host tools are. */
export interface BootDiskOptions {
  readonly kernel: string;
  readonly initrd: string;
  readonly args: string;
  /** A raw disk of at least `BOOT_BYTES` that has a Linux file system behind them; its beginning is overwritten. */
  readonly withRoot?: string;
  /** Root of the unpacked syslinux, syslinux-common and mtools packages. */
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
  await run(join(bin, 'mcopy'), ['-i', partition, options.kernel, '::vmlinuz'], { env, signal });
  await run(join(bin, 'mcopy'), ['-i', partition, options.initrd, '::initrd'], { env, signal });
  await run(join(bin, 'syslinux'), ['--install', partition], { env, signal });

  const raw = options.withRoot ?? join(scratch, 'disk.raw');
  const disk = await open(raw, options.withRoot === undefined ? 'w' : 'r+', 0o600);
  try {
    const size = Math.max((await disk.stat()).size, BOOT_BYTES);
    await disk.write(await bootSector(options.tools, size / SECTOR), 0, SECTOR, 0);
    const content = await readFile(partition);
    await disk.write(content, 0, content.length, FIRST_SECTOR * SECTOR);
    await disk.truncate(size);
  } finally {
    await disk.close();
  }
  const convert = ['convert', '-f', 'raw', '-O', 'qcow2', '-c', '-o', 'compression_type=zstd', raw, path];
  await run('qemu-img', convert, { signal });
}

/** SYSLINUX's master boot record with a table of the active partition, and of one behind it where the disk goes on. */
async function bootSector(tools: string, diskSectors: number): Promise<Buffer> {
  const sector = Buffer.alloc(SECTOR);
  (await readFile(join(tools, 'usr/lib/syslinux/mbr/mbr.bin'))).copy(sector, 0, 0, 440);
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
