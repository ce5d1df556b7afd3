// The tiny guest: builds its disk, kernel and initrd from Debian's packages and keeps them in a cache outside the
// repository, under the digest of everything that went in.
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { writeBootDisk } from './boot-disk.ts';
import { fastKernel } from './fast-kernel.ts';
import { buildInitrd } from './initrd.ts';
import { fetchPackages, PACKAGE_NAMES, type PackageFile, refreshLists, resolvePackages } from './packages.ts';
import { run } from './process.ts';

/** A finished guest: absolute paths of its files, and the digest of its inputs as its version. */
export interface GuestBuild {
  /** qcow2 image that SeaBIOS boots from virtio, sata or scsi. */
  readonly disk: string;
  /** For direct kernel boot together with `initrd`; BIOS machines only. */
  readonly kernel: string;
  readonly initrd: string;
  /** sha256 over the scripts in this folder and the exact package files. */
  readonly digest: string;
}

/** Options of `buildGuest` and `ensureGuest`; `log` gets one line per step. */
export interface GuestBuildOptions {
  readonly signal?: AbortSignal | undefined;
  readonly log?: ((line: string) => void) | undefined;
}

/** Debian packages the host needs, to build the guest (qemu-utils) and to run its test (the other). */
export const GUEST_BUILD_PACKAGES: readonly string[] = ['qemu-utils', 'qemu-system-x86'];

/** Beginnings of parts of the kernel that nobody uses here: self tests, keys, and the tables of tracing. */
const UNUSED_INITCALLS = [
  'crypto_kdf108_init',
  'init_encrypted',
  'load_system_certificate_list',
  'slab_sysfs_init',
  'init_kprobe_trace',
  'trace_eval_init',
  'tracer_init_tracefs',
  'init_sel_fs',
  // each would read the descriptions of all types of the kernel (BTF), for programs that are not here
  'cubictcp_register',
  'bpf_rstat_kfunc_init',
  'bpf_key_sig_kfuncs_init',
  'kfunc_init',
  'bpf_prog_test_run_init',
  'bpf_tcp_ca_kfunc_init',
  'ftrace_check_for_weak_functions',
];

/**
 * Put before every kernel command line by the kernel's loader; arguments given at boot come later and win.
 * Each leaves out work that takes an emulated CPU long and that a throw-away guest does not miss.
 */
export const GUEST_KERNEL_ARGS = [
  'quiet', // nothing to the serial line, which is slow
  'tsc=reliable', // no watching of the clock source
  'no_timer_check', // no 10 interrupts' wait for the timer
  'cryptomgr.notests', // no self tests of the ciphers
  'rodata=off', // no write protection of the kernel's text, nor the check of it
  'init_on_alloc=0', // no clearing of each allocation
  'mitigations=off', // no guards against attacks from inside this guest
  'noreplace-smp', // no search for locked instructions to unlock while there is one CPU
  'pci=noaer',
  'audit=0',
  'lsm=capability', // no other security modules, which each opening of a file would ask
  'random.trust_cpu=on', // random numbers at once
  'clearcpuid=erms,rep_good,fsrm', // no string instructions for memory, which are emulated byte by byte
  'cgroup_disable=memory',
  'norandmaps', // libraries at the same addresses in each process: they are translated once
  'no5lvl', // page tables of four levels are walked faster
  'nosmap', // no switch of access rights around each copy from a program
  'nosmep',
  'hardened_usercopy=off',
  'randomize_kstack_offset=off',
  'scsi_mod.scan=sync', // a driver has found its disks when it is loaded
  '8250.nr_uarts=1', // no search for serial lines that no machine has
  `initcall_blacklist=${UNUSED_INITCALLS.join(',')}`,
].join(' ');

const SOURCES = import.meta.dirname;
const ROOTFS = join(SOURCES, 'rootfs');
const FILES = { disk: 'disk.qcow2', kernel: 'vmlinuz', initrd: 'initrd' } as const;
/** Changes whenever apt-get update brought other lists. */
const APT_LISTS = '/var/lib/apt/lists';

/** Installs what the host needs; for set-up steps that run as root. Nothing else in this folder changes the host. */
export async function installGuestBuildPackages(options: GuestBuildOptions = {}): Promise<void> {
  const env = { DEBIAN_FRONTEND: 'noninteractive' };
  const { signal } = options;
  await run('apt-get', ['update'], { env, signal });
  await run('apt-get', ['install', '-y', '--no-install-recommends', ...GUEST_BUILD_PACKAGES], { env, signal });
}

/** Builds the guest into `outDir`, whole or not at all; an earlier build there is replaced. */
export async function buildGuest(options: GuestBuildOptions & { outDir: string }): Promise<GuestBuild> {
  const packages = await resolvePackages(options.signal);
  return buildFrom(packages, options);
}

/**
 * Returns the cached guest, building it first when it is missing or its inputs changed. `cacheDir` defaults to
 * coracle/guest in $XDG_CACHE_HOME or ~/.cache. Builds of the same inputs at the same time do not disturb each other.
 * When apt cannot tell today's versions, an earlier build of the same scripts is used.
 */
export async function ensureGuest(options: GuestBuildOptions & { cacheDir?: string } = {}): Promise<GuestBuild> {
  const cacheDir = options.cacheDir ?? defaultCacheDir();
  const scripts = await sourcesDigest();
  const lists = (await stat(APT_LISTS, { bigint: true }).catch(() => undefined))?.mtimeNs.toString() ?? 'none';
  // Asking apt takes half a second: this file remembers the answer for as long as its lists do not change.
  const memo = join(cacheDir, `${scripts}.json`);
  const known = await readMemo(memo);
  const cached = known && (await existing(join(cacheDir, known.digest), known.digest));
  if (cached && known.lists === lists) return cached;

  let packages: PackageFile[];
  try {
    packages = await resolvePackages(options.signal);
  } catch (error) {
    if (!cached || options.signal?.aborted) throw error;
    options.log?.(`using the earlier guest ${cached.digest.slice(0, 12)}: ${(error as Error).message}`);
    return cached;
  }
  const make = async (files: readonly PackageFile[]): Promise<GuestBuild> => {
    const digest = inputsDigest(scripts, files);
    const outDir = join(cacheDir, digest);
    return (await existing(outDir, digest)) ?? (await buildFrom(files, { ...options, outDir }));
  };
  const build = await make(packages).catch(async (error: Error) => {
    options.signal?.throwIfAborted();
    // Lists that are too old name files the archive no longer has.
    if (!(await refreshLists(options.signal))) throw error;
    return make(await resolvePackages(options.signal));
  });
  const { digest } = build;
  const written = `${memo}.${process.pid}`;
  await writeFile(written, JSON.stringify({ lists, digest }), { mode: 0o600 });
  await rename(written, memo);
  return build;
}

async function buildFrom(
  packages: readonly PackageFile[],
  options: GuestBuildOptions & { outDir: string },
): Promise<GuestBuild> {
  const { outDir, signal } = options;
  const log = options.log ?? (() => undefined);
  const digest = inputsDigest(await sourcesDigest(), packages);
  await mkdir(dirname(outDir), { recursive: true, mode: 0o700 });
  const scratch = await mkdtemp(`${outDir}.tmp-`);
  try {
    log(`fetching ${packages.length} packages`);
    const root = await fetchPackages(packages, scratch, signal);
    const result = join(scratch, 'result');
    await mkdir(result, { mode: 0o700 });
    const kernel = join(result, FILES.kernel);
    const initrd = join(result, FILES.initrd);
    log('writing kernel and initrd');
    const image = (await readdir(join(root, 'boot'))).find((name) => name.startsWith('vmlinuz-'));
    if (!image) throw new Error('the kernel package holds no boot/vmlinuz');
    const original = await readFile(join(root, 'boot', image));
    const xz = join(root, 'usr/bin/xz');
    await writeFile(kernel, await fastKernel(original, { xz, defaultArgs: GUEST_KERNEL_ARGS, signal }));
    await writeFile(initrd, await buildInitrd(root, { rootfs: ROOTFS, signal }));
    log('writing the boot disk');
    const args = 'console=ttyS0';
    await writeBootDisk(join(result, FILES.disk), { kernel, initrd, args, tools: root, scratch, signal });
    await writeFile(join(result, 'digest'), `${digest}\n`);
    await publish(result, outDir, digest);
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
  return guestAt(outDir, digest);
}

/** Moves the finished folder into place; another process may have put the same build there meanwhile. */
async function publish(result: string, outDir: string, digest: string): Promise<void> {
  if (await existing(outDir, digest)) return;
  const present = await readdir(outDir).catch((): string[] => []);
  if (present.length > 0 && !present.includes('digest')) {
    throw new Error(`${outDir} is not empty and holds no earlier guest: name another folder, or empty it`);
  }
  await rm(outDir, { recursive: true, force: true });
  try {
    await rename(result, outDir);
  } catch (error) {
    if (!(await existing(outDir, digest))) throw error;
  }
}

async function existing(dir: string, digest: string): Promise<GuestBuild | undefined> {
  const written = await readFile(join(dir, 'digest'), 'utf8').catch(() => '');
  return written.trim() === digest ? guestAt(dir, digest) : undefined;
}

function guestAt(dir: string, digest: string): GuestBuild {
  return { disk: join(dir, FILES.disk), kernel: join(dir, FILES.kernel), initrd: join(dir, FILES.initrd), digest };
}

function inputsDigest(scripts: string, packages: readonly PackageFile[]): string {
  const hash = createHash('sha256').update(scripts);
  for (const { file, hash: content } of packages) hash.update(`\0${file}\0${content}`);
  return hash.digest('hex');
}

/** Over every file here that shapes the guest: not tests, not text for people. */
async function sourcesDigest(): Promise<string> {
  const hash = createHash('sha256').update(PACKAGE_NAMES.join(' '));
  const entries = await readdir(SOURCES, { recursive: true, withFileTypes: true });
  const paths = entries.filter((e) => e.isFile()).map((e) => join(e.parentPath, e.name));
  for (const path of paths.sort()) {
    if (/\.(test\.ts|md)$/.test(path)) continue;
    hash.update(`\0${path.slice(SOURCES.length)}\0`).update(await readFile(path));
  }
  return hash.digest('hex');
}

async function readMemo(path: string): Promise<{ lists: string; digest: string } | undefined> {
  try {
    const memo: { lists: string; digest: string } = JSON.parse(await readFile(path, 'utf8'));
    return /^[0-9a-f]{64}$/.test(memo.digest) ? memo : undefined;
  } catch {
    return undefined; // absent or torn: it is only a shortcut
  }
}

function defaultCacheDir(): string {
  return join(process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'coracle', 'guest');
}
