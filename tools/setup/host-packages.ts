/**
 * Programs of the host that Coracle drives: found in PATH, else installed through apt where that is allowed (root, or
 * sudo without a password), else named in one line. A run that finds everything costs a few file look-ups.
 */
import { spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync } from 'node:fs';
import { delimiter, isAbsolute, join } from 'node:path';

/** Command -> Debian package that brings it. */
export const QEMU_PROGRAMS: Readonly<Record<string, string>> = {
  'qemu-system-x86_64': 'qemu-system-x86',
  'qemu-img': 'qemu-utils',
};
/** Guests with a TPM, or that boot by UEFI, want them; others do without. A file stands for a package without programs. */
export const FIRMWARE_PROGRAMS: Readonly<Record<string, string>> = {
  swtpm: 'swtpm',
  '/usr/share/OVMF/OVMF_CODE_4M.fd': 'ovmf',
};
/** Tests read ISO images with it. */
export const ISO_READER: Readonly<Record<string, string>> = { xorriso: 'xorriso' };
export const KUBECTL_PROGRAM: Readonly<Record<string, string>> = { kubectl: 'kubernetes-client' };

/** True when PATH has an executable of that name; of an absolute path, when there is such a file. */
export function isInstalled(command: string): boolean {
  if (isAbsolute(command)) return existsSync(command);
  return (process.env['PATH'] ?? '')
    .split(delimiter)
    .concat('/usr/sbin', '/sbin')
    .some((dir) => {
      try {
        accessSync(join(dir, command), constants.X_OK);
        return dir !== '';
      } catch {
        return false;
      }
    });
}

/** Installs what is missing. Returns the packages still missing, with one line written about how to get them. */
export function ensurePrograms(programs: Readonly<Record<string, string>>, note: (line: string) => void): string[] {
  const missing = [
    ...new Set(
      Object.entries(programs)
        .filter(([command]) => !isInstalled(command))
        .map(([, name]) => name),
    ),
  ];
  if (missing.length === 0) return [];
  const prefix = aptPrefix();
  if (!prefix) {
    note(`set-up: please install ${missing.join(' ')} (for example: sudo apt-get install ${missing.join(' ')})`);
    return missing;
  }
  note(`set-up: installing ${missing.join(' ')}`);
  const apt = (...words: string[]): boolean => {
    const [program, ...argv] = [...prefix, 'env', 'DEBIAN_FRONTEND=noninteractive', 'apt-get', '-qq', ...words];
    return spawnSync(program!, argv, { stdio: ['ignore', 'ignore', 'ignore'], timeout: 600_000 }).status === 0;
  };
  const install = (): boolean => apt('install', '-y', '--no-install-recommends', ...missing);
  if (!install()) {
    apt('update');
    if (!install()) note(`set-up: apt-get could not install ${missing.join(' ')}; please install it and try again`);
  }
  return Object.entries(programs)
    .filter(([command]) => !isInstalled(command))
    .map(([, name]) => name);
}

/** What to put before apt-get, or undefined when it may not be used. */
function aptPrefix(): string[] | undefined {
  if (!isInstalled('apt-get')) return undefined;
  if (process.getuid?.() === 0) return [];
  return isInstalled('sudo') && spawnSync('sudo', ['-n', 'true'], { stdio: 'ignore' }).status === 0
    ? ['sudo', '-n']
    : undefined;
}
