/**
 * Disks and media for a running guest: what its instance is to have, and a Pod of this node holds the claim of, is plugged
 * in; what it is not to have any more is taken back once the guest has let go of it. The record follows each step, so that
 * the next agent finds the guest as it is. One that ends between a step and its record finds what QEMU has, and goes on.
 */

import { isAbsolute, join } from 'node:path';
import type { ReadonlyVmi } from '@coracle/kubevirt/kinds/kinds';
import {
  diskChanges,
  volumeMounted,
  volumeReady,
  volumeUnmounted,
} from '@coracle/kubevirt/rules/live-update/disk-changes';
import type { PlannedDisk } from '@coracle/kubevirt/rules/machine/machine-plan';
import { machinePlan } from '@coracle/kubevirt/rules/machine/plan';
import { nodeNumberOf, plugDisk, unplugDisk } from '@coracle/kubevirt/rules/machine/plug-disk';
import { volumeFile } from '../../disk/prepare.ts';
import { type DiskFile, diskNode, pluggedDisk } from '../../qemu/argv.ts';
import type { QmpConnection } from '../../qmp/qmp-connection.ts';
import type { LauncherState } from '../launcher/launcher-state.ts';
import { keepRecord, type VmRecord } from '../launcher/vm-record.ts';
import type { Guest } from './guest.ts';
import { attachVolume, filesOfImage, volumesOfGuest } from './guest-volumes.ts';
import {
  changeDevices,
  type DeviceStepInput,
  devicesOf,
  ignoreRefusal,
  mayChangeDevices,
  removeDevice,
} from './plugged-devices.ts';

/** A guest that has not let go of a disk after this long is said to hold it; it is asked again and again. */
const SLOW_UNPLUG_MS = 30_000;

/** Plugs and unplugs what may be now. False when it has to be tried again; it throws only with the end of the agent. */
export async function updateDisks(launcher: LauncherState, guest: Guest): Promise<boolean> {
  const { record, vmi } = launcher;
  if (!record || !vmi || !mayChangeDevices(launcher, guest)) return true;
  const { plug, unplug } = diskChanges(vmi, record.plan);
  for (const name of launcher.plugging.keys())
    if (!plug.includes(name) && !unplug.includes(name)) launcher.plugging.delete(name);
  return changeDevices(launcher, { guest, vmi, note }, [
    [takeDisk, unplug],
    [giveDisk, plug],
  ]);
}

/** Says once what a disk waits for: in the status of its volume, and as an event. */
function note(launcher: LauncherState, name: string, trouble: string): void {
  const known = launcher.plugging.get(name);
  if (known?.trouble === trouble) return;
  launcher.plugging.set(name, { since: launcher.environment.clock.monotonic(), ...known, trouble });
  launcher.log.warn('disk not changed', { disk: name, error: trouble });
  launcher.event('Warning', 'FailedHotplug', trouble);
  launcher.changed();
}

async function giveDisk(launcher: LauncherState, { guest, vmi, name }: DeviceStepInput): Promise<boolean> {
  const { environment } = launcher;
  const { pool, nodeName } = environment;
  const record = launcher.record as VmRecord;
  const wanted = machinePlan(vmi, environment.facts).disks.find((disk) => disk.name === name);
  if (!wanted) throw new Error(`volume ${name}: the instance has no disk of that name`);
  const change = plugDisk(record.plan, wanted);
  if (typeof change === 'string') throw new Error(change);
  const { plan, disk } = change;
  const file = await openVolume(launcher, vmi, { plan, name });
  const qmp = guest.qmp();
  try {
    const { block, device } = pluggedDisk(disk, file);
    // What an earlier try has left, or an agent that ended in the middle.
    if (disk.kind === 'disk' && !(await devicesOf(qmp)).has(disk.id)) {
      await dropNodes(qmp, disk.node ?? 0);
      await qmp.execute('blockdev-add', block);
      await qmp.execute('device_add', device);
    } else if (disk.kind === 'cdrom') {
      await removeMedium(qmp, disk);
      await dropNodes(qmp, disk.node ?? 0);
      await qmp.execute('blockdev-add', block);
      await insertMedium(qmp, disk);
    }
  } catch (error) {
    await dropNodes(qmp, disk.node ?? 0).catch(() => {});
    if (file.volume !== undefined) pool.release(file.volume, { vmi: record.vmiUid, place: nodeName });
    throw error;
  }
  const disks = { ...record.disks, [name]: file };
  const volumes = { ...record.volumes, ...volumesOfGuest(new Map([[name, file]])) };
  const files = [...(record.files ?? []), ...filesOfImage(file).filter((path) => isAbsolute(path))];
  await keep(launcher, name, { ...record, plan, disks, volumes, files });
  await attachVolume(launcher, guest, name);
  for (const { reason, message } of [volumeMounted(name), volumeReady(name)]) launcher.event('Normal', reason, message);
  return true;
}

function openVolume(
  { environment, record, pod }: LauncherState,
  vmi: ReadonlyVmi,
  { plan, name }: { readonly plan: VmRecord['plan']; readonly name: string },
): Promise<DiskFile> {
  if (!record || !pod) throw new Error(`volume ${name}: the pod of the guest is not known yet`);
  const request = {
    vmi,
    pod,
    directory: join(environment.vmsDirectory, record.vmiUid),
    images: environment.images,
    client: environment.client,
    clock: environment.clock,
    signal: environment.signal,
    hostDiskRoots: environment.hostDiskRoots,
    pool: environment.pool,
    nodeName: environment.nodeName,
  };
  return volumeFile(request, plan, name, diskNode(nodeNumberOf(plan, name) ?? 0));
}

async function takeDisk(launcher: LauncherState, { guest, name }: DeviceStepInput): Promise<boolean> {
  const record = launcher.record as VmRecord;
  const disk = record.plan.disks.find((one) => one.name === name);
  if (!disk) return true;
  const qmp = guest.qmp();
  if (disk.kind === 'cdrom') await removeMedium(qmp, disk);
  else if (!(await removeDevice(qmp, disk.id))) {
    const { clock } = launcher.environment;
    const { since } = launcher.plugging.get(name) ?? { since: clock.monotonic() };
    if (!launcher.plugging.has(name)) launcher.plugging.set(name, { since });
    else if (clock.monotonic() - since > SLOW_UNPLUG_MS)
      note(
        launcher,
        name,
        `volume ${name}: the guest does not release its disk; the request is repeated until it does`,
      );
    return false;
  }
  await dropNodes(qmp, nodeNumberOf(record.plan, name) ?? 0);
  const { [name]: volume, ...volumes } = record.volumes ?? {};
  const { [name]: file, ...disks } = record.disks ?? {};
  const gone = new Set(volume?.files ?? (file ? filesOfImage(file) : []));
  const files = (record.files ?? []).filter((path) => !gone.has(path));
  await keep(launcher, name, { ...record, plan: unplugDisk(record.plan, name), disks, volumes, files });
  if (volume)
    launcher.environment.pool.release(volume.handle, { vmi: record.vmiUid, place: launcher.environment.nodeName });
  const { reason, message } = volumeUnmounted(name);
  launcher.event('Normal', reason, message);
  return true;
}

async function insertMedium(qmp: QmpConnection, { id, node = 0 }: PlannedDisk): Promise<void> {
  await qmp.execute('blockdev-open-tray', { id, force: true });
  await qmp.execute('blockdev-insert-medium', { id, 'node-name': diskNode(node) });
  await qmp.execute('blockdev-close-tray', { id });
}

/** Also where the guest has locked the tray: what its owner takes out is out. */
async function removeMedium(qmp: QmpConnection, { id }: PlannedDisk): Promise<void> {
  await qmp.execute('blockdev-open-tray', { id, force: true });
  // Refused where there is none.
  await qmp.execute('blockdev-remove-medium', { id }).catch(ignoreRefusal);
  await qmp.execute('blockdev-close-tray', { id });
}

/**
 * Closes the image of a disk that nothing hangs on any more: the node it was opened as, and those of layers that were put
 * over it since. A layer below another goes with it, or is refused until that has gone.
 */
async function dropNodes(qmp: QmpConnection, number: number): Promise<void> {
  const node = diskNode(number);
  for (let before = Number.POSITIVE_INFINITY; ; ) {
    const named = await qmp.execute('query-named-block-nodes', { flat: true });
    const left = named
      .map((one) => one['node-name'] ?? '')
      .filter((name) => name === node || (name.startsWith(`${node}-`) && !name.endsWith('-f')));
    if (left.length === 0) return;
    if (left.length >= before) throw new Error(`QEMU does not close the image of ${node}`);
    before = left.length;
    for (const name of left) await qmp.execute('blockdev-del', { 'node-name': name }).catch(ignoreRefusal);
  }
}

async function keep(launcher: LauncherState, name: string, record: VmRecord): Promise<void> {
  await keepRecord(launcher, record);
  launcher.plugging.delete(name);
  // The status follows from the record.
  launcher.changed();
}
