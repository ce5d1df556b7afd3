// Debian packages as build inputs: which exact files the archive offers now, fetched and unpacked without installing
// anything. apt verifies the signatures; nothing here needs to be root.
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { run } from './process.ts';

/** One exact package file, as `apt-get download --print-uris` names it. */
export interface PackageFile {
  readonly file: string;
  readonly hash: string;
}

/** Goes into the guest itself. The kernel image is found through the meta package's dependency. */
const GUEST_PACKAGES = ['busybox-static'];
const KERNEL_META_PACKAGE = 'linux-image-amd64';

/** qemu-guest-agent with every library it loads, as the archive splits them. */
const AGENT_PACKAGES = [
  'qemu-guest-agent',
  'libc6',
  'libglib2.0-0',
  'libpcre2-8-0',
  'libnuma1',
  'libudev1',
  'liburing2',
];

/** The SSH server with every library it loads, and what scp and sftp ask it for. */
const SSH_PACKAGES = [
  'dropbear-bin',
  'libcrypt1',
  'libgmp10',
  'libtomcrypt1',
  'libtommath1',
  'openssh-sftp-server',
  'zlib1g',
];

/** Run on the host from where they were unpacked, so that the host needs no set-up for them. */
export const TOOL_PACKAGES = ['syslinux', 'mtools', 'xz-utils'];

/** Every package name the guest is built from, the kernel's meta package included. */
export const PACKAGE_NAMES: readonly string[] = [
  KERNEL_META_PACKAGE,
  ...GUEST_PACKAGES,
  ...AGENT_PACKAGES,
  ...SSH_PACKAGES,
  ...TOOL_PACKAGES,
];

/** Fetches the package lists anew where that is allowed (root); false where it is not. */
export async function refreshLists(signal?: AbortSignal): Promise<boolean> {
  if (process.getuid?.() !== 0) return false;
  await run('apt-get', ['-qq', 'update'], { signal });
  return true;
}

/** Finds the exact versions the host's package lists offer; a fresh machine without lists gets them first, as root. */
export async function resolvePackages(signal?: AbortSignal): Promise<PackageFile[]> {
  try {
    return await offeredPackages(signal);
  } catch (error) {
    signal?.throwIfAborted();
    if (!(await refreshLists(signal))) throw error;
    return offeredPackages(signal);
  }
}

async function offeredPackages(signal?: AbortSignal): Promise<PackageFile[]> {
  const depends = (await run('apt-cache', ['depends', '--important', KERNEL_META_PACKAGE], { signal })).toString();
  const kernel = /Depends: (linux-image-\S+)/.exec(depends)?.[1];
  if (!kernel) {
    throw new Error(`the package lists offer no ${KERNEL_META_PACKAGE}: on Debian, run apt-get update and try again`);
  }
  return offeredFiles([kernel, ...PACKAGE_NAMES.filter((name) => name !== KERNEL_META_PACKAGE)], signal);
}

/** The exact files of those packages, by the host's package lists. Throws where they lack one. */
export async function offeredFiles(names: readonly string[], signal?: AbortSignal): Promise<PackageFile[]> {
  const uris = (await run('apt-get', ['download', '--print-uris', ...names], { signal })).toString();
  const files = [...uris.matchAll(/^'[^']+' (\S+\.deb) \d+ (\S+)$/gm)].map((m) => ({ file: m[1]!, hash: m[2]! }));
  if (files.length < names.length) {
    throw new Error(`apt-get offers ${files.length} of the ${names.length} packages of the guest: run apt-get update`);
  }
  return files.sort((a, b) => a.file.localeCompare(b.file));
}

/** Downloads the packages into `dir`/deb and unpacks them over each other into `dir`/root, which it returns. */
export async function fetchPackages(files: readonly PackageFile[], dir: string, signal?: AbortSignal): Promise<string> {
  const debs = join(dir, 'deb');
  const root = join(dir, 'root');
  await mkdir(debs, { recursive: true });
  await mkdir(root, { recursive: true });
  // name=version pins the download to what was resolved (the digest names exactly these files).
  const pins = files.map(({ file }) => {
    const [name, version] = file.split('_');
    return `${name}=${decodeURIComponent(version!)}`;
  });
  await run('apt-get', ['download', '-o', 'APT::Sandbox::User=root', ...pins], { cwd: debs, signal });
  for (const { file } of files) await run('dpkg-deb', ['-x', join(debs, file), root], { signal });
  return root;
}
