// Picks kernel modules and writes the two text files busybox modprobe works from. Debian's package holds no modules.dep
// (depmod runs when it is installed), so names, aliases and dependencies are read from the modules themselves.
import { readdir, readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';

/** What the guest has drivers for; whatever these depend on comes along. Names that are built in are left out. */
const WANTED = [
  // the virtio family
  'virtio_pci',
  'virtio_blk',
  'virtio_net',
  'virtio_scsi',
  'virtio_rng',
  'virtio_balloon',
  'virtio_console',
  'virtio_mem',
  'virtio_input',
  // other buses and cards that KubeVirt's manifests can ask for
  'ahci',
  'ata_piix',
  'sd_mod',
  'sr_mod',
  'e1000',
  'i6300esb',
  'pvpanic_pci',
  'pvpanic',
  // file systems of seed disks and of disks a test may bring
  'isofs',
  'vfat',
  'nls_cp437',
  'nls_iso8859_1',
  'nls_ascii',
  'nls_utf8',
  'virtiofs',
  // one that can be frozen, with what it looks for by name
  'ext4',
  'crc32c_generic',
  // the power button and the keys of the screen
  'button',
  'evdev',
  'i8042',
  'atkbd',
];

/** The chosen modules without signatures, and modprobe's files about them. */
export interface GuestModules {
  readonly release: string;
  readonly files: readonly { readonly name: string; readonly data: Buffer }[];
  readonly dep: string;
  readonly alias: string;
}

/** Chooses the modules from an unpacked kernel package; throws when it holds no modules at all. */
export async function guestModules(root: string): Promise<GuestModules> {
  const base = join(root, 'lib/modules');
  const [release] = await readdir(base);
  if (!release) throw new Error(`no kernel modules under ${base}`);
  const paths = new Map<string, string>();
  for (const entry of await readdir(join(base, release), { recursive: true })) {
    if (entry.endsWith('.ko')) paths.set(moduleName(basename(entry, '.ko')), join(base, release, entry));
  }
  if (paths.size === 0) throw new Error(`the modules under ${base} are compressed: this tool reads plain .ko files`);
  const chosen = new Map<string, { data: Buffer; depends: string[]; aliases: string[] }>();
  const queue = WANTED.map(moduleName);
  for (const name of queue) {
    const path = paths.get(name);
    if (!path || chosen.has(name)) continue;
    const data = slimmed(withoutSignature(await readFile(path)));
    const info = moduleInfo(data);
    const depends = (info.get('depends')?.[0] ?? '').split(',').filter(Boolean).map(moduleName);
    chosen.set(name, { data, depends, aliases: info.get('alias') ?? [] });
    queue.push(...depends);
  }
  const files = [...chosen].map(([name, { data }]) => ({ name: `${name}.ko`, data }));
  // modprobe loads from the end of the line, so a module stands before all it depends on.
  const closure = (name: string, done = new Set<string>()): Set<string> => {
    for (const d of chosen.get(name)?.depends ?? []) if (!done.has(d)) closure(d, done).add(d);
    return done;
  };
  const needs = (name: string) => [...closure(name)].reverse();
  const dep = [...chosen.keys()].map(
    (name) =>
      `${name}.ko:${needs(name)
        .map((d) => ` ${d}.ko`)
        .join('')}\n`,
  );
  const alias = [...chosen].flatMap(([name, { aliases }]) => aliases.map((a) => `alias ${a} ${name}\n`));
  return { release, files, dep: dep.join(''), alias: alias.join('') };
}

function moduleName(name: string): string {
  return name.replaceAll('-', '_');
}

/** The `key=value` strings of the .modinfo section (found by its content: it is plain text between zero bytes). */
function moduleInfo(module: Buffer): Map<string, string[]> {
  const info = new Map<string, string[]>();
  const text = module.toString('latin1');
  for (const [, key, value] of text.matchAll(/(?<=\0)(alias|depends)=([^\0]*)(?=\0)/g)) {
    info.set(key!, [...(info.get(key!) ?? []), value!]);
  }
  return info;
}

const SIGNATURE_MARK = '~Module signature appended~\n';

/** Cuts the signature off: checking it costs an emulated CPU more than loading does, and this kernel does not insist. */
function withoutSignature(module: Buffer): Buffer {
  const mark = module.length - SIGNATURE_MARK.length;
  if (module.toString('latin1', mark) !== SIGNATURE_MARK) return module;
  return module.subarray(0, mark - 12 - module.readUInt32BE(mark - 4));
}

/** Sections that only tracers and stack traces read, and the table of the calls and returns replaced below. */
const UNUSED_SECTIONS = new Set(['.BTF', '.orc_unwind', '.orc_unwind_ip', '__mcount_loc', '.return_sites']);
/** What the kernel would put, when it loads a module, in place of a call of these: nothing to trace, a plain return. */
const REPLACED: Readonly<Record<string, string>> = { __fentry__: '0f1f440000', __x86_return_thunk: 'c3cccccccc' };
const CALL_OR_JUMP = [0xe8, 0xe9];
const [NO_SECTION, RELOCATIONS] = [0, 4];

/**
 * The same module with the work done that the kernel has at loading it, which takes an emulated CPU long, and without the
 * sections that nobody reads here.
 */
function slimmed(module: Buffer): Buffer {
  const count = module.readUInt16LE(0x3c);
  const table = Buffer.from(module.subarray(Number(module.readBigUInt64LE(0x28)))).subarray(0, count * 64);
  const sections = Array.from({ length: count }, (_, i) => {
    const header = table.subarray(i * 64, (i + 1) * 64);
    const [at, size] = [Number(header.readBigUInt64LE(24)), Number(header.readBigUInt64LE(32))];
    // A section without bytes in the file (type 8) has a size all the same.
    const data = Buffer.from(module.subarray(at, header.readUInt32LE(4) === 8 ? at : at + size));
    return { header, data, link: header.readUInt32LE(40), target: header.readUInt32LE(44) };
  });
  const text = (at: number, { data }: { data: Buffer }): string => data.toString('latin1', at, data.indexOf(0, at));
  const names = sections[module.readUInt16LE(0x3e)]!;
  for (const { header, data, link, target } of sections) {
    const isRelocations = header.readUInt32LE(4) === RELOCATIONS;
    const of = isRelocations ? sections[target]! : undefined;
    if ([header, of?.header].some((h) => h && UNUSED_SECTIONS.has(text(h.readUInt32LE(0), names)))) {
      header.writeUInt32LE(NO_SECTION, 4);
      continue;
    }
    for (let at = 0; of && at < data.length; at += 24) {
      const symbol = sections[link]!.data.readUInt32LE(data.readUInt32LE(at + 12) * 24);
      const code = symbol === 0 ? undefined : REPLACED[text(symbol, sections[sections[link]!.link]!)];
      const opcodeAt = Number(data.readBigUInt64LE(at)) - 1;
      if (code === undefined || !CALL_OR_JUMP.includes(of.data[opcodeAt]!)) continue;
      of.data.write(code, opcodeAt, 'hex');
      data.writeUInt32LE(0, at + 8); // no relocation any more
    }
  }
  const parts = [Buffer.from(module.subarray(0, 64))];
  let end = 64;
  for (const { header, data } of sections) {
    if (header.readUInt32LE(4) === NO_SECTION) header.fill(0, 8);
    else {
      const gap = -end & (Math.max(Number(header.readBigUInt64LE(48)), 1) - 1);
      header.writeBigUInt64LE(BigInt(end + gap), 24);
      parts.push(Buffer.alloc(gap), data);
      end += gap + data.length;
    }
  }
  parts.push(Buffer.alloc(-end & 7), table);
  parts[0]!.writeBigUInt64LE(BigInt(end + (-end & 7)), 0x28);
  return Buffer.concat(parts);
}
