// The "newc" archive the kernel unpacks as its first root file system (Documentation/driver-api/early-userspace in the
// kernel tree). Written here so that device nodes and root ownership need no privilege.

/** One file of the archive; `data` of a link is its target. Paths are relative, without a leading slash. */
export interface CpioEntry {
  readonly path: string;
  readonly kind: 'dir' | 'file' | 'link' | 'char';
  readonly mode?: number;
  readonly data?: Uint8Array;
  /** Major and minor number of a character device. */
  readonly device?: readonly [number, number];
}

const KIND_BITS = { dir: 0o040000, file: 0o100000, link: 0o120000, char: 0o020000 } as const;
const DEFAULT_MODE = { dir: 0o755, file: 0o644, link: 0o777, char: 0o600 } as const;

/** Writes the archive; parents must come before their children. All files belong to root, all times are zero. */
export function cpioArchive(entries: readonly CpioEntry[]): Buffer {
  const parts: Uint8Array[] = [];
  entries.forEach((entry, index) => {
    const mode = KIND_BITS[entry.kind] | (entry.mode ?? DEFAULT_MODE[entry.kind]);
    parts.push(...record(entry, index + 1, mode));
  });
  parts.push(...record({ path: 'TRAILER!!!', kind: 'file' }, 0, 0));
  return Buffer.concat(parts);
}

function record(entry: CpioEntry, inode: number, mode: number): Uint8Array[] {
  const name = Buffer.from(`${entry.path}\0`);
  const data = entry.data ?? new Uint8Array(0);
  const [major, minor] = entry.device ?? [0, 0];
  // inode, mode, uid, gid, links, time, size, device (2), special device (2), name length, checksum
  const fields = [inode, mode, 0, 0, 1, 0, data.length, 0, 0, major, minor, name.length, 0];
  const header = Buffer.from(`070701${fields.map((n) => n.toString(16).padStart(8, '0')).join('')}`);
  return [header, name, padding(header.length + name.length), data, padding(data.length)];
}

function padding(length: number): Uint8Array {
  return new Uint8Array((4 - (length % 4)) % 4);
}
