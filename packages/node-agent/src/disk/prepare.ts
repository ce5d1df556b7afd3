/** All volumes of a VM at once: each planned disk gets its file. */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { MachinePlan } from '@coracle/kubevirt/rules/machine/machine-plan';
import type { DiskFile } from '../qemu/argv.ts';
import type { Access } from '../storage/volume-users.ts';
import { emptyDisk, hostDisk } from './blank-volumes.ts';
import { claimDisk, ephemeralClaim } from './claim-volumes.ts';
import { cloudInitVolume } from './cloud-init-volume.ts';
import { type FirmwareState, firmwareState } from './firmware-state.ts';
import { containerDisk, kernelFiles } from './image-volumes.ts';
import { objectVolume } from './object-volumes.ts';
import { removeLayers, savedDisk, savedKernel } from './saved-files.ts';
import { failedMount, VolumeError, type VolumeRequest } from './volume-request.ts';

export interface PreparedVolumes extends FirmwareState {
  readonly disks: ReadonlyMap<string, DiskFile>;
  readonly kernel?: string;
  readonly initrd?: string;
}

/**
 * Makes the files of every planned disk, in parallel; may be called again after a failure. Throws VolumeError, or the
 * signal's reason. File names are `disk-<n>`: nothing of a user's text gets into a path.
 */
export async function prepareVolumes(request: VolumeRequest, plan: MachinePlan): Promise<PreparedVolumes> {
  const work = plan.disks
    .map((disk, index) => ({ disk, prefix: `disk-${index}` }))
    .filter(({ disk }) => disk.hasVolume)
    .map(async ({ disk, prefix }) => {
      for (const suffix of ['qcow2', 'base', 'iso'])
        await rm(join(request.directory, `${prefix}.${suffix}`), { force: true });
      await removeLayers(request.directory, prefix);
      const saved = request.saved && (await savedDisk(request, request.saved, { disk, prefix }));
      return [disk.name, saved ?? (await volumeFile(request, plan, disk.name, prefix))] as const;
    });
  const kernel = request.saved ? savedKernel(request, request.saved) : kernelFiles(request);
  const firmware = firmwareState(request, plan);
  // All settle before one failure is reported: nothing goes on writing behind the caller's back.
  await Promise.allSettled([...work, kernel, firmware]);
  return { disks: new Map(await Promise.all(work)), ...(await kernel), ...(await firmware) };
}

/** The file of one disk of the plan; what is made for it has names that begin with the prefix. Throws as `prepareVolumes`. */
export async function volumeFile(
  request: VolumeRequest,
  plan: MachinePlan,
  name: string,
  prefix: string,
): Promise<DiskFile> {
  const volume = request.vmi.spec.volumes?.find((candidate) => candidate.name === name);
  if (!volume) throw new VolumeError('FailedMount', name, `volume ${name} is not in the spec`);
  try {
    if (volume.containerDisk) return await containerDisk(request, name, volume.containerDisk, prefix);
    if (volume.emptyDisk) return await emptyDisk(request, volume, `${prefix}.qcow2`);
    if (volume.hostDisk) return await hostDisk(request, volume);
    const claim = volume.persistentVolumeClaim?.claimName ?? volume.dataVolume?.name;
    if (claim !== undefined) return await claimDisk(request, name, claim, accessOf(plan, name));
    if (volume.ephemeral?.persistentVolumeClaim)
      return await ephemeralClaim(request, name, volume.ephemeral.persistentVolumeClaim.claimName, prefix);
    const file = `${prefix}.iso`;
    const source = volume.cloudInitNoCloud ?? volume.cloudInitConfigDrive;
    const flavour = volume.cloudInitNoCloud ? 'noCloud' : 'configDrive';
    if (source) return await cloudInitVolume(request, plan, { name, file, flavour, source });
    const made = await objectVolume(request, volume, file);
    if (made) return made;
  } catch (error) {
    request.signal.throwIfAborted();
    if (error instanceof VolumeError) throw error;
    const text = error instanceof Error ? error.message : String(error);
    throw failedMount(name, text, error);
  }
  throw failedMount(name, 'this kind of volume is not supported by this node');
}

/** What the guest does with a disk. */
function accessOf(plan: MachinePlan, name: string): Access {
  const disk = plan.disks.find((candidate) => candidate.name === name);
  if (disk?.readOnly) return 'read';
  return disk?.shareable ? 'shared' : 'write';
}
