/** Which way each disk goes, as the source sees it, and whether the target has what it takes. */
import { readdir, stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { nodeNumber } from '@coracle/kubevirt/rules/machine/plug-disk';
import { planDifference } from '@coracle/kubevirt/rules/migration/plan-difference';
import { SAVED_LAYER } from '../../disk/saved-files.ts';
import { type DiskFile, diskNode, VM_FILES } from '../../qemu/argv.ts';
import type { Guest } from '../guest/guest.ts';
import { imageContainer } from '../launcher/pod-status.ts';
import type { PreparedVm } from '../launcher/start-vm.ts';
import type { VmRecord } from '../launcher/vm-record.ts';
import type { DiskOffer, FileMark, Hello } from './channel.ts';

export interface LocalDisk extends DiskOffer {
  /** Over another file: only what lies above it moves. */
  readonly layered: boolean;
}

/** What the running guest has open, by its own QEMU. */
export async function offeredDisks(guest: Guest, record: VmRecord, directory: string): Promise<LocalDisk[]> {
  const nodes = await guest.qmp().execute('query-named-block-nodes', { flat: true });
  const disks: LocalDisk[] = [];
  for (const [at, disk] of record.plan.disks.entries()) {
    const index = nodeNumber(record.plan, at);
    const node = nodes.find((candidate) => candidate['node-name'] === diskNode(index));
    const top = record.volumes?.[disk.name]?.files[0];
    if (top !== undefined) {
      // Its layers may not be those that QEMU was started on: the node may have gone.
      const virtualSize = node?.image['virtual-size'] ?? 0;
      disks.push({ index, virtualSize, layered: true, move: 'shared', shared: await markOf(top) });
      continue;
    }
    if (!disk.hasVolume || !node) continue;
    const path = resolve(directory, node.file);
    const base = node.backing_file === undefined ? undefined : resolve(directory, node.backing_file);
    const layered = base !== undefined;
    const offer = { index, virtualSize: node.image['virtual-size'], layered };
    if (dirname(path) !== directory) disks.push({ ...offer, move: 'shared', shared: await markOf(path) });
    else if (path.endsWith('.iso')) disks.push({ ...offer, move: 'copy', ...(!node.ro && { mirrorToo: true }) });
    else {
      const outside = layered && dirname(base) !== directory ? await markOf(base) : undefined;
      // QEMU exports no read-only node for writing, and there is nothing to send: the guest has changed nothing on it.
      const move = node.ro ? 'same' : 'mirror';
      // What a guest had written before it was saved lies below its overlay, and the target has none of it.
      const isResumed = layered && SAVED_LAYER.test(basename(base));
      disks.push({ ...offer, layered: layered && !isResumed, move, ...(outside && { shared: outside }) });
    }
  }
  return disks;
}

async function markOf(path: string): Promise<FileMark> {
  const { dev, ino, size } = await stat(path);
  return { dev, ino, size };
}

/** Name of the file of a disk that is copied. */
export const copyName = (index: number): string => `disk-${index}.iso`;

/** The tail of the console goes along, so that it can be replayed. */
const MAX_CONSOLE = 2 * 1024 * 1024;
/** Images of ours hold what Secrets and ConfigMaps hold: a megabyte each. */
const MAX_IMAGE = 64 * 1024 * 1024;

/** Files a source may copy into the directory: name -> most bytes. */
export function copiedFiles(hello: Hello, prepared: PreparedVm): Map<string, number> {
  const files = new Map<string, number>([[VM_FILES.serialLog, MAX_CONSOLE]]);
  const { disks } = hello.plan;
  for (const disk of hello.disks) {
    const at = disks.findIndex((_, place) => nodeNumber(hello.plan, place) === disk.index);
    const file = prepared.volumes.disks.get(disks[at]?.name ?? '')?.file;
    if (disk.move === 'copy' && file !== undefined && isImage(file))
      files.set(copyName(disk.index), Math.min(disk.virtualSize, MAX_IMAGE));
  }
  return files;
}

/** The files of the target's disks: those that are copied come under the source's numbers. */
export function arrivedDisks(hello: Hello, disks: PreparedVm['volumes']['disks']): Map<string, DiskFile> {
  const files = new Map(disks);
  for (const [at, { name }] of hello.plan.disks.entries()) {
    const index = nodeNumber(hello.plan, at);
    const file = files.get(name);
    const isCopied = hello.disks.some((offer) => offer.index === index && offer.move === 'copy');
    if (file && isCopied) files.set(name, { ...file, file: copyName(index) });
  }
  return files;
}

/** True for an image that preparing a volume made here (`disk-N.iso`). */
const isImage = (file: string): boolean => basename(file) === file && file.endsWith('.iso');

/** Why the guest that is offered cannot run on what was prepared here; undefined when it can. */
export async function offerProblem(hello: Hello, prepared: PreparedVm): Promise<string | undefined> {
  const field = planDifference(hello.plan, prepared.plan);
  if (field !== undefined) return `this node would build another machine: ${field} differs`;
  const digestOf = (id: string | undefined): string | undefined => id?.slice(id.lastIndexOf('@') + 1);
  for (const name of new Set([...Object.keys(hello.imageIds), ...Object.keys(prepared.imageIds)]))
    if (digestOf(hello.imageIds[name]) !== digestOf(prepared.imageIds[name]))
      return `${name}: the guest runs from ${hello.imageIds[name] ?? 'nothing'}, this node has ${prepared.imageIds[name] ?? 'nothing'}`;
  const present = new Set(await readdir(prepared.directory));
  for (const [at, disk] of hello.plan.disks.entries()) {
    if (!disk.hasVolume) continue;
    const index = nodeNumber(hello.plan, at);
    const offer = hello.disks.find((candidate) => candidate.index === index);
    const file = prepared.volumes.disks.get(disk.name);
    if (!offer || !file) return `disk ${disk.name}: only one of the two nodes has it`;
    const local = dirname(resolve(prepared.directory, file.file)) === resolve(prepared.directory);
    if (local !== (offer.move !== 'shared')) return `disk ${disk.name}: it is local to one of the two nodes only`;
    if (offer.move === 'copy' && !isImage(file.file)) return `disk ${disk.name}: it is not an image here`;
    if (local && (offer.move === 'mirror' || offer.move === 'same') && !present.has(basename(file.file)))
      return `disk ${disk.name}: it was not made`;
    // An overlay on an image of the store: each node has its own copy, and the digests above say that it is the same.
    const onImage = offer.move !== 'shared' && Object.hasOwn(prepared.imageIds, imageContainer(disk.name));
    if (!offer.shared || onImage) continue;
    const path = offer.move === 'shared' ? file.file : (file.backing?.file ?? '');
    const mark = await markOf(resolve(prepared.directory, path)).catch(() => undefined);
    // Other hosts number their devices differently; the file is the same when its number and size are.
    // That of a layer of a pool grows as the guest writes.
    const isSame = mark?.ino === offer.shared.ino && (file.volume !== undefined || mark.size === offer.shared.size);
    if (!isSame) return `disk ${disk.name}: the two nodes do not share its file`;
  }
  return undefined;
}

/** Absolute path of a file that is copied. */
export const copyPath = (directory: string, index: number): string => join(directory, copyName(index));
