// Finds the shared libraries a program loads, by reading its dynamic section: no ldd, which would run the loader.
import { readFile, realpath } from 'node:fs/promises';
import { basename, join } from 'node:path';

const LIBRARY_FOLDERS = ['lib/x86_64-linux-gnu', 'usr/lib/x86_64-linux-gnu', 'lib64'];

/** A library under the name programs ask for it by. */
export interface Library {
  readonly name: string;
  readonly data: Buffer;
}

/** Every library `program` needs, direct or not, found in the tree `root`; throws when one is missing there. */
export async function elfLibraries(program: Buffer, root: string): Promise<Library[]> {
  const found = new Map<string, Library>();
  const queue = needed(program);
  for (const name of queue) {
    if (found.has(name)) continue;
    const data = await findLibrary(name, root);
    found.set(name, { name: basename(name), data });
    queue.push(...needed(data));
  }
  return [...found.values()];
}

async function findLibrary(name: string, root: string): Promise<Buffer> {
  for (const folder of LIBRARY_FOLDERS) {
    try {
      return await readFile(await realpath(join(root, folder, name)));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    }
  }
  throw new Error(`library ${name} is in none of the guest's packages`);
}

/** The DT_NEEDED names of a 64-bit ELF file. */
function needed(elf: Buffer): string[] {
  const u64 = (at: number) => Number(elf.readBigUInt64LE(at));
  const segments = Array.from({ length: elf.readUInt16LE(0x38) }, (_, i) => {
    const at = u64(0x20) + i * 56;
    return { type: elf.readUInt32LE(at), offset: u64(at + 8), address: u64(at + 16), size: u64(at + 32) };
  });
  const dynamic = segments.find((s) => s.type === 2);
  if (!dynamic) return [];
  const entries: [number, number][] = [];
  for (let at = dynamic.offset; at < dynamic.offset + dynamic.size; at += 16) entries.push([u64(at), u64(at + 8)]);
  const strings = entries.find(([tag]) => tag === 5)?.[1] ?? 0;
  const home = segments.find((s) => s.type === 1 && strings >= s.address && strings < s.address + s.size);
  if (!home) return [];
  const table = strings - home.address + home.offset;
  return entries
    .filter(([tag]) => tag === 1)
    .map(([, at]) => elf.toString('latin1', table + at, elf.indexOf(0, table + at)));
}
