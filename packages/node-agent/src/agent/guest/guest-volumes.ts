/**
 * The volumes of a guest in the node's pool: connected with its QEMU while it runs, so that snapshots and expansions go
 * through it, and given back when it has ended. The record of the guest follows their layers.
 */
import { basename, dirname } from 'node:path';
import type { CreateSnapshots } from '@coracle/cluster-rules/storage/pool-calls';
import { nodeNumber } from '@coracle/kubevirt/rules/machine/plug-disk';
import { type DiskFile, diskNode } from '../../qemu/argv.ts';
import type { Pool } from '../../storage/pool.ts';
import type { LauncherState } from '../launcher/launcher-state.ts';
import { type GuestVolume, type VmRecord, writeRecord } from '../launcher/vm-record.ts';
import type { Guest } from './guest.ts';

interface Image {
  readonly file: string;
  readonly backing?: Image;
}

/** The files of an image, from the top down. */
export const filesOfImage = ({ file, backing }: Image): string[] => [file, ...(backing ? filesOfImage(backing) : [])];

/** Which of the disks are volumes of the pool, for the record. */
export function volumesOfGuest(disks: ReadonlyMap<string, DiskFile>): Record<string, GuestVolume> {
  const found: Record<string, GuestVolume> = {};
  for (const [name, disk] of disks)
    if (disk.volume !== undefined) found[name] = { handle: disk.volume, files: filesOfImage(disk) };
  return found;
}

/** The same from the record; of a guest that a version without a pool started its QEMU tells, of images `UID/disk.img`. */
async function knownVolumes(record: VmRecord, guest: Guest, pool: Pool): Promise<Record<string, GuestVolume>> {
  if (record.volumes) return { ...record.volumes };
  const isOurs = (file: string): boolean =>
    basename(file) === 'disk.img' && dirname(dirname(file)) === pool.directory && pool.has(basename(dirname(file)));
  if (!record.files?.some(isOurs)) return {};
  const nodes = await guest.qmp().execute('query-named-block-nodes', { flat: true });
  const found: Record<string, GuestVolume> = {};
  for (const [index, { name }] of record.plan.disks.entries()) {
    const file = nodes.find((node) => node['node-name'] === diskNode(nodeNumber(record.plan, index)))?.file ?? '';
    if (isOurs(file)) found[name] = { handle: basename(dirname(file)), files: [file] };
  }
  return found;
}

/** Connects the volumes with the guest's QEMU; they are let go of when the guest is closed. */
export async function attachVolumes(launcher: LauncherState, guest: Guest): Promise<void> {
  const { environment, record } = launcher;
  if (!record) return;
  const { pool } = environment;
  const volumes = await knownVolumes(record, guest, pool).catch((error: Error) => {
    launcher.log.warn('volumes not attached', { error: error.message });
    return {} as Record<string, GuestVolume>;
  });
  if (!record.volumes) launcher.record = { ...record, volumes };
  for (const name of Object.keys(volumes)) await attachVolume(launcher, guest, name);
}

/** The same for one disk of the record; nothing for one that is no volume of the pool. */
export async function attachVolume(launcher: LauncherState, guest: Guest, name: string): Promise<void> {
  const { environment, record } = launcher;
  const handle = record?.volumes?.[name]?.handle;
  const at = record?.plan.disks.findIndex((disk) => disk.name === name) ?? -1;
  const disk = record?.plan.disks[at];
  if (!record || !disk || handle === undefined) return;
  try {
    const detach = await environment.pool.attach(handle, {
      vmi: record.vmiUid,
      place: environment.nodeName,
      device: disk.id,
      node: diskNode(nodeNumber(record.plan, at)),
      file: { direct: disk.cache === 'none' || disk.cache === 'directsync', aio: disk.io },
      access: disk.readOnly ? 'read' : disk.shareable ? 'shared' : 'write',
      qmp: () => guest.qmp(),
      obstacle: () => obstacleOf(launcher, guest),
      onLayers: (files) => noteLayers(launcher, name, files),
    });
    if (guest.signal.aborted) detach();
    else guest.signal.addEventListener('abort', detach, { once: true });
  } catch (error) {
    launcher.log.warn('volume not attached', { volume: handle, error: (error as Error).message });
  }
}

function obstacleOf(launcher: LauncherState, guest: Guest): string | undefined {
  if (launcher.record?.migration) return 'its guest moves to another node';
  // Its QEMU gives its disks up for a moment when all of its memory is written; before that a save takes its own snapshots.
  if (launcher.record?.saving && !launcher.savesVolumes) return 'the memory of its guest is being saved';
  if (guest.state.exit !== undefined || launcher.record?.result) return 'its guest ends';
  if (!guest.state.connected) return 'its guest does not answer';
  return undefined;
}

/** What the guest has open now, for the next agent, and for whoever counts what it writes. */
async function noteLayers(launcher: LauncherState, name: string, files: readonly string[]): Promise<void> {
  const { record, environment } = launcher;
  const before = record?.volumes?.[name];
  if (!record || !before || before.files.join() === files.join()) return;
  const others = (record.files ?? []).filter((file) => !before.files.includes(file));
  launcher.record = {
    ...record,
    files: [...others, ...files],
    volumes: { ...record.volumes, [name]: { ...before, files } },
  };
  await writeRecord(environment.vmsDirectory, launcher.record).catch((error: Error) =>
    launcher.log.warn('record not written', { error: error.message }),
  );
}

/** Gives the volumes back: the guest has ended, or was never started. */
export function releaseVolumes({ environment, vmiUid }: LauncherState): void {
  if (vmiUid !== '') environment.pool.releaseAll({ vmi: vmiUid, place: environment.nodeName });
}

/** Takes the snapshots of a save, while the guest stands still: nobody else changes its layers then. */
export const snapshotsOfSave =
  (launcher: LauncherState) =>
  async (snapshots: CreateSnapshots['snapshots']): Promise<void> => {
    launcher.savesVolumes = true;
    try {
      await launcher.environment.pool.createSnapshots({ snapshots });
    } finally {
      launcher.savesVolumes = false;
    }
  };
