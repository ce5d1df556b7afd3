/** The files of a guest that go with its memory: its own disks, and what it boots from. */
import { constants, copyFile, stat } from 'node:fs/promises';
import { isAbsolute, join } from 'node:path';
import { nodeNumber } from '@coracle/kubevirt/rules/machine/plug-disk';
import { layersOf, linkFile, type SavedDisk } from '../../disk/saved-files.ts';
import { type BackingFile, diskNode } from '../../qemu/argv.ts';
import type { Guest } from '../guest/guest.ts';
import type { VmRecord } from '../launcher/vm-record.ts';
import type { SavedState } from './state-files.ts';

export type OwnFiles = Pick<SavedState, 'disks' | 'kernel' | 'initrd'>;

/** Bytes of each disk as the guest sees it, by its place in the plan. */
export async function diskSizes(guest: Guest): Promise<ReadonlyMap<string, number>> {
  const nodes = await guest.qmp().execute('query-named-block-nodes', { flat: true });
  return new Map(nodes.map((node) => [node['node-name'] ?? '', node.image['virtual-size']]));
}

/**
 * Copies what a guest that stands still has written, and links what nobody writes to. Files of claims and of the host lie
 * elsewhere and are left out.
 */
export async function saveOwnFiles(
  { disks = {}, plan }: VmRecord,
  options: {
    readonly directory: string;
    readonly making: string;
    readonly sizes: ReadonlyMap<string, number>;
    readonly signal: AbortSignal;
  },
): Promise<OwnFiles> {
  const { directory, making, sizes, signal } = options;
  const saved: Record<string, SavedDisk> = {};
  for (const [index, disk] of plan.disks.entries()) {
    const source = disks[disk.name];
    if (!source || isAbsolute(source.file)) continue;
    const isWritten = !disk.readOnly && source.readOnly !== true;
    let below: BackingFile | undefined;
    for (const [depth, { file, format }] of [...layersOf(source).entries()].reverse()) {
      signal.throwIfAborted();
      const name = `disk-${index}.layer-${depth}`;
      const [from, to] = [join(directory, file), join(making, name)];
      if (depth === 0 && isWritten) await copyFile(from, to, constants.COPYFILE_FICLONE);
      else await linkFile(from, to);
      below = { file: name, format, ...(below && { backing: below }) };
    }
    const size = sizes.get(diskNode(nodeNumber(plan, index)));
    if (!below || size === undefined) throw new Error(`disk ${disk.name}: QEMU does not know it`);
    saved[disk.name] = { ...below, size, ...(source.readOnly && { readOnly: true }) };
  }
  // EFI variables are memory of a device: QEMU writes them to its file again when the guest goes on.
  const kernel = await takeFile('kernel', options);
  const initrd = await takeFile('initrd', options);
  return { disks: saved, ...(kernel && { kernel }), ...(initrd && { initrd }) };
}

/** The name, if there is such a file. */
async function takeFile(
  name: string,
  { directory, making }: { readonly directory: string; readonly making: string },
): Promise<string | undefined> {
  const from = join(directory, name);
  const isThere = await stat(from).then(
    () => true,
    () => false,
  );
  if (!isThere) return undefined;
  await linkFile(from, join(making, name));
  return name;
}
