// Puts the guest's root file system together: our scripts from rootfs/, busybox, modules, guest agent and SSH server.
import { readdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type CpioEntry, cpioArchive } from './cpio.ts';
import { elfLibraries } from './elf-libraries.ts';
import { guestModules } from './modules.ts';
import { run } from './process.ts';

const LOADER = 'lib64/ld-linux-x86-64.so.2';
const EMPTY_FOLDERS = [
  'dev',
  'proc',
  'sys',
  'run/boot',
  'run/cloud',
  'run/files',
  'run/mnt',
  'run/seed',
  'tmp',
  'www',
  'root',
  'home/tiny',
  'var/run',
  'var/log',
  'usr/sbin',
  'etc/dropbear',
];
/** Programs that load libraries, and where the guest has them. */
const PROGRAMS: Readonly<Record<string, string>> = {
  'usr/sbin/qemu-ga': 'usr/sbin/qemu-ga',
  'usr/sbin/dropbear': 'usr/sbin/dropbear',
  'usr/bin/dropbearkey': 'usr/sbin/dropbearkey',
  'usr/lib/openssh/sftp-server': 'usr/lib/sftp-server',
};

/** Builds the initial file system from the unpacked packages under `root` and the scripts in `rootfs`. */
export async function buildInitrd(
  root: string,
  options: { rootfs: string; signal?: AbortSignal | undefined },
): Promise<Buffer> {
  const files = new Map<string, CpioEntry>();
  const add = (entry: CpioEntry) => files.set(entry.path, entry);
  const file = (path: string, data: Uint8Array, mode = 0o644) => add({ path, kind: 'file', data, mode });

  for (const path of EMPTY_FOLDERS) add({ path, kind: 'dir' });
  add({ path: 'tmp', kind: 'dir', mode: 0o1777 });
  add({ path: 'root', kind: 'dir', mode: 0o700 });
  // The kernel opens the console before /init can mount anything.
  add({ path: 'dev/console', kind: 'char', device: [5, 1] });
  add({ path: 'dev/null', kind: 'char', device: [1, 3], mode: 0o666 });

  const busybox = join(root, 'bin/busybox');
  file('bin/busybox', await readFile(busybox), 0o755);
  const applets = (await run(busybox, ['--list'], { signal: options.signal })).toString().trim().split('\n');
  for (const name of applets) {
    if (name !== 'busybox') add({ path: `bin/${name}`, kind: 'link', data: Buffer.from('busybox') });
  }
  // Where programs of others look: the guest agent for /sbin/hwclock (without it nobody can set the time), scripts for
  // /usr/bin/env. Not /sbin/modprobe: the kernel would run it ten times at its start, for ciphers that are not here.
  add({ path: 'sbin/hwclock', kind: 'link', data: Buffer.from('../bin/busybox') });
  add({ path: 'usr/bin', kind: 'link', data: Buffer.from('../bin') });

  const modules = await guestModules(root);
  const folder = `lib/modules/${modules.release}`;
  for (const { name, data } of modules.files) file(`${folder}/${name}`, data);
  file(`${folder}/modules.dep`, Buffer.from(modules.dep));
  file(`${folder}/modules.alias`, Buffer.from(modules.alias));

  for (const [from, to] of Object.entries(PROGRAMS)) {
    const program = await readFile(join(root, from));
    file(to, program, 0o755);
    for (const { name, data } of await elfLibraries(program, root)) {
      file(name === LOADER.slice(6) ? LOADER : `lib/x86_64-linux-gnu/${name}`, data, 0o755);
    }
  }

  for (const entry of await readdir(options.rootfs, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const from = join(entry.parentPath, entry.name);
    const data = await readFile(from);
    const secret = entry.name === 'shadow';
    const script = data.toString('latin1', 0, 2) === '#!';
    file(from.slice(options.rootfs.length + 1), data, secret ? 0o600 : script ? 0o755 : 0o644);
  }
  return cpioArchive(withFolders(files));
}

/** All entries sorted, with every folder that was only implied: sorted paths have parents before children. */
function withFolders(files: Map<string, CpioEntry>): CpioEntry[] {
  for (const path of [...files.keys()]) {
    for (let up = dirname(path); up !== '.'; up = dirname(up)) {
      if (!files.has(up)) files.set(up, { path: up, kind: 'dir' });
    }
  }
  return [...files.values()].sort((a, b) => (a.path < b.path ? -1 : 1));
}
