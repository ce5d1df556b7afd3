// A Debian with systemd, cloud-init and guest agent, as people run it: made of the archive's packages by mmdebstrap, and kept
// in a cache outside the repository.
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rename, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { BOOT_BYTES, writeBootDisk } from '../guest/boot-disk.ts';
import { fetchPackages, offeredFiles, TOOL_PACKAGES } from '../guest/packages.ts';
import { run } from '../guest/process.ts';

const SUITE = 'bookworm';
const INCLUDED = [
  'cloud-init',
  'curl',
  'dbus',
  'initramfs-tools',
  'iproute2',
  'iputils-ping',
  'libnss-resolve',
  'linux-image-cloud-amd64',
  'netplan.io',
  'openssh-server',
  'qemu-guest-agent',
  'systemd-resolved',
  'systemd-sysv',
  'udev',
];
const KERNEL_ARGS =
  'root=LABEL=root rw console=tty0 console=ttyS0 net.ifnames=0 tsc=reliable no_timer_check mitigations=off';
const CUSTOMIZE = join(import.meta.dirname, 'customize.sh');

/** Program -> Debian package of what the build needs, beside those of the tiny guest. */
export const DEBIAN_GUEST_PROGRAMS: Readonly<Record<string, string>> = {
  mmdebstrap: 'mmdebstrap',
  mke2fs: 'e2fsprogs',
};

/**
 * Returns the path of a qcow2 disk (2 GiB as guests see it) that SeaBIOS boots, building it first where the cache has none of
 * these sources; a few minutes, and half a GiB of packages. Throws where the archive cannot be reached, or where the user may
 * neither be root nor have user namespaces.
 */
export async function ensureDebianGuest(options: {
  signal: AbortSignal;
  log: (line: string) => void;
}): Promise<string> {
  const { signal, log } = options;
  const sources = [await readFile(CUSTOMIZE), await readFile(import.meta.filename), SUITE];
  const digest = sources.reduce((hash, part) => hash.update(part), createHash('sha256')).digest('hex');
  const cache = join(process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'coracle', 'debian-guest');
  const disk = join(cache, `${digest}.qcow2`);
  if (existsSync(disk)) return disk;
  await mkdir(cache, { recursive: true, mode: 0o700 });
  const scratch = await mkdtemp(join(cache, 'tmp-'));
  try {
    log(`building a Debian ${SUITE} guest (a few minutes, once)`);
    const env = { DEBIAN_GUEST_OUT: scratch, DEBIAN_GUEST_ROOT_AT: `${BOOT_BYTES}`, TMPDIR: scratch };
    const packages = [`--include=${INCLUDED.join(',')}`, '--aptopt=APT::Install-Recommends "false"'];
    const target = ['--variant=minbase', '--format=null', `--customize-hook=${CUSTOMIZE}`, SUITE, '-'];
    await run('mmdebstrap', ['--quiet', ...packages, ...target], { env, signal });
    const tools = await fetchPackages(await offeredFiles(TOOL_PACKAGES, signal), join(scratch, 'tools'), signal);
    const [kernel, initrd, withRoot] = ['vmlinuz', 'initrd', 'disk.raw'].map((name) => join(scratch, name)) as [
      string,
      string,
      string,
    ];
    const made = join(scratch, 'disk.qcow2');
    await writeBootDisk(made, { kernel, initrd, args: KERNEL_ARGS, withRoot, tools, scratch, signal });
    await rename(made, disk);
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
  return disk;
}
