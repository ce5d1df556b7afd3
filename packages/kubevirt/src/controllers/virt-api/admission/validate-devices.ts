/** Rules about disks and the other devices of a guest. */

import { checkLabelName } from '@coracle/apimachinery/meta/name-rules';
import type { Disk, VirtualMachineInstanceSpec } from '../../../kinds/kubevirt.ts';
import type { ClusterConfig } from '../../../rules/machine-defaults/cluster-config.ts';
import { countPresent, type Findings, gateMissing } from './causes.ts';
import { validateSerial } from './validate-resources.ts';

type Spec = Readonly<VirtualMachineInstanceSpec>;

const BUSES = ['virtio', 'scsi', 'sata', 'usb'];
const CACHES = ['', 'none', 'writethrough', 'writeback', 'directsync'];
const IO_MODES = ['', 'native', 'threads'];
const ERROR_POLICIES = ['stop', 'ignore', 'report', 'enospace'];
const IO_THREADS_POLICIES = ['shared', 'auto', 'supplementalPool'];
const PANIC_MODELS: Readonly<Record<string, readonly string[]>> = {
  isa: ['amd64'],
  hyperv: ['amd64'],
  pvpanic: ['amd64', 'arm64'],
};
const MIN_BLOCK = 512;
const MAX_BLOCK = 2 * 1024 * 1024;

const PCI_ADDRESS = /^[0-9a-fA-F]{4}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-9a-fA-F]{1,2}$/;
export const isPciAddress = (text: string): boolean => PCI_ADDRESS.test(text);

export function validateDevices(found: Findings, spec: Spec, config: ClusterConfig): void {
  const devices = found.at('.domain.devices');
  validateBootOrder(devices, spec);
  validateDisks(devices.at('.disks'), spec.domain.devices.disks);
  validateDiskVolumes(devices, spec, config);
  validateIoThreads(found, spec);
  validateInputs(devices, spec);
  validateOtherDevices(devices, spec, config);
  validateFilesystems(devices.at('.filesystems'), spec, config);
  validatePanicDevices(devices, spec);
}

/** Each disk by itself and next to those before it. `found` is at the list. */
export function validateDisks(found: Findings, disks: readonly Readonly<Disk>[] | undefined): void {
  const firstOf = new Map<string, number>();
  found.each('', disks, (at, disk, i) => {
    const twin = firstOf.get(disk.name);
    if (twin === undefined) firstOf.set(disk.name, i);
    else at.invalid('.name', `${at.path} and ${found.path}[${twin}] must not have the same Name.`);
    validateDisk(at, disk);
  });
}

function validateBootOrder(found: Findings, { domain: { devices } }: Spec): void {
  const seen = new Set<number>();
  for (const list of ['disks', 'interfaces'] as const)
    found.each(`.${list}`, devices[list] as readonly { readonly bootOrder?: number }[] | undefined, (at, device) => {
      const { bootOrder } = device;
      if (bootOrder === undefined) return;
      if (bootOrder < 1) at.invalid('.bootOrder', `${at.path} must have a boot order > 0, if supplied`);
      else if (seen.has(bootOrder))
        at.invalid('.bootOrder', `Boot order for ${at.path}.bootOrder already set for a different device.`);
      seen.add(bootOrder);
    });
}

/** How a guest sees a disk, '' where nothing is said. */
function targetOf(disk: Readonly<Disk>): { type: 'disk' | 'lun' | 'cdrom' | ''; bus: string } {
  const type = (['disk', 'lun', 'cdrom'] as const).find((each) => disk[each] !== undefined);
  return type === undefined ? { type: '', bus: '' } : { type, bus: disk[type]?.bus ?? '' };
}

function validateDisk(found: Findings, disk: Readonly<Disk>): void {
  const field = found.path;
  // The name becomes that of a container.
  for (const message of checkLabelName(disk.name)) found.invalid('.name', message);
  if (countPresent([disk.disk, disk.lun, disk.cdrom]) > 1)
    found.invalid('', `${field} can only have a single target type defined`);
  validateBus(found, disk);
  validatePciAddress(found, disk);
  validateSerial(found.at('.serial'), disk.serial);
  if (!CACHES.includes(disk.cache ?? '')) found.invalid('.cache', `${field}.cache has invalid value ${disk.cache}`);
  if (!IO_MODES.includes(disk.io ?? '')) {
    const modes = IO_MODES.slice(1).join(', ');
    found.unsupported('.io', `Disk IO mode for ${field} is not supported. Supported modes are: ${modes}.`);
  }
  const { errorPolicy } = disk;
  if (errorPolicy !== undefined && !ERROR_POLICIES.includes(errorPolicy))
    found.invalid('.errorPolicy', `${field}.errorPolicy has invalid value ${JSON.stringify(errorPolicy)}`);
  validateBlockSize(found.at('.blockSize'), disk);
}

function validateBus(found: Findings, disk: Readonly<Disk>): void {
  const { type, bus } = targetOf(disk);
  if (disk.lun?.reservation && disk.lun.bus !== 'scsi')
    found.invalid('.lun.bus', `Persistent reservation requires a SCSI bus, but ${bus} was specified`);
  if (bus === '') return;
  const refuse = (text: string): void => found.invalid(`.${type}.bus`, text);
  if (bus === 'ide') refuse('IDE bus is not supported');
  else if (!BUSES.includes(bus))
    refuse(`${found.path} is set with an unrecognized bus ${bus}, must be one of: ${BUSES.join(', ')}`);
  else if (bus === 'virtio' && type === 'cdrom') refuse(`Bus type ${bus} is invalid for CD-ROM device`);
  else if (bus === 'sata' && disk.disk?.readonly) refuse(`${bus} hard-disks do not support read-only.`);
  if (disk.dedicatedIOThread && bus !== 'virtio')
    found.unsupported('', `IOThreads are not supported for disks on a ${bus} bus`);
}

function validatePciAddress(found: Findings, disk: Readonly<Disk>): void {
  const address = disk.disk?.pciAddress;
  if (!address) return;
  const refuse = (text: string): void => found.invalid('.disk.pciAddress', `disk ${found.path}.name ${text}`);
  if (disk.disk?.bus !== 'virtio') refuse('- setting a PCI address is only possible with bus type virtio.');
  if (!isPciAddress(address)) refuse(`has malformed PCI address (${address}).`);
}

/** The first finding, or one for each of the two sizes. */
function validateBlockSize(found: Findings, disk: Readonly<Disk>): void {
  const { custom, matchVolume } = disk.blockSize ?? {};
  if (custom === undefined) return;
  const { logical = 0, physical = 0, discardGranularity } = custom;
  const at = found.at('.custom');
  if (matchVolume !== undefined && matchVolume.enabled !== false)
    found.invalid('', "Block size matching can't be enabled together with a custom value");
  else if (logical > physical)
    at.invalid('.logical', `Logical size ${logical} must be the same or less than the physical size of ${physical}`);
  else if (targetOf(disk).bus === 'sata' && logical !== MIN_BLOCK)
    at.invalid('.logical', `Logical size ${logical} must be ${MIN_BLOCK} for SATA devices`);
  else if (discardGranularity !== undefined && logical !== 0 && discardGranularity % logical !== 0)
    at.invalid(
      '.discardGranularity',
      `Discard granularity ${discardGranularity} must be multiples of logical size ${logical}`,
    );
  else
    for (const [name, size] of Object.entries({ logical, physical })) {
      const refuse = (why: string): void => at.invalid(`.${name}`, `Provided size of ${size} ${why}`);
      if (size < MIN_BLOCK) refuse(`is less than the supported minimum size of ${MIN_BLOCK}`);
      else if (size > MAX_BLOCK) refuse(`is greater than the supported maximum size of ${MAX_BLOCK}`);
      else if ((size & (size - 1)) !== 0) refuse('is not a power of 2');
    }
}

function validateDiskVolumes(found: Findings, spec: Spec, config: ClusterConfig): void {
  const volumes = new Map((spec.volumes ?? []).map((volume) => [volume.name, volume]));
  found.each('.disks', spec.domain.devices.disks, (at, disk) => {
    const field = at.path;
    const volume = volumes.get(disk.name);
    if (volume === undefined) {
      if (disk.cdrom === undefined) at.invalid('.name', `${field}.Name '${disk.name}' not found.`);
      else if (!config.isEnabled('DeclarativeHotplugVolumes'))
        at.invalid('.name', `an empty CD-ROM drive needs a gate: ${gateMissing('DeclarativeHotplugVolumes')}`);
      return;
    }
    if (disk.lun !== undefined && volume.persistentVolumeClaim === undefined && volume.dataVolume === undefined)
      at.invalid('.lun', `${field}.lun can only be mapped to a DataVolume or PersistentVolumeClaim volume.`);
    if (disk.lun?.reservation && !config.persistentReservation)
      found.invalid(
        '.disks.luns.reservation',
        'persistent reservations are off: set configuration.persistentReservationConfiguration.enabled of the KubeVirt object',
      );
    if (volume.downwardMetrics === undefined) return;
    const mapped = 'DownwardMetrics volume must be';
    if (disk.disk === undefined) at.required('.disk', `${mapped} mapped to a disk, but ${field}.disk is not set`);
    else if ((disk.disk.bus || 'virtio') !== 'virtio')
      at.invalid('.disk.bus', `${mapped} on the virtio bus, but ${field}.disk.bus is ${disk.disk.bus}`);
  });
}

function validateIoThreads(found: Findings, { domain: { ioThreadsPolicy: policy, ioThreads } }: Spec): void {
  if (policy === undefined) return;
  if (!IO_THREADS_POLICIES.includes(policy))
    found.invalid('.domain.ioThreadsPolicy', `Invalid IOThreadsPolicy (${policy})`);
  else if (policy === 'supplementalPool' && (ioThreads?.supplementalPoolThreadCount ?? 0) < 1)
    found.invalid(
      '.domain.ioThreads.count',
      'the number of I/O threads must be given and positive for the supplementalPool policy',
    );
}

const validateInputs = (found: Findings, spec: Spec): void =>
  found.each('.inputs', spec.domain.devices.inputs, (at, { bus, type }) => {
    if (!['', 'virtio', 'usb'].includes(bus ?? '')) at.invalid('.bus', 'Input device can have only virtio or usb bus.');
    if (type !== 'tablet') at.invalid('.type', 'Input device can have only tablet type.');
  });

function validateOtherDevices(found: Findings, { domain: { devices } }: Spec, config: ClusterConfig): void {
  const { hostDevices = [], sound, video } = devices;
  const byClaim = hostDevices.every(({ claimName }) => claimName !== undefined);
  if (hostDevices.length > 0 && !(byClaim && config.isEnabled('HostDevicesWithDRA')))
    found.gated('.hostDevices', 'HostDevices', config);
  if (devices.autoattachVSOCK === true) found.gated('.autoattachVSOCK', 'VSOCK', config);
  if (devices.downwardMetrics !== undefined) found.gated('.downwardMetrics', 'DownwardMetrics', config);
  const displays = (devices.gpus ?? []).filter(({ virtualGPUOptions }) => {
    const display = virtualGPUOptions?.display;
    return display !== undefined && display.enabled !== false && (display.ramFB === undefined || display.ramFB.enabled);
  });
  if (displays.length > 1) found.invalid('.gpus', 'configuring multiple displays with ramfb is not valid');
  if (sound !== undefined && !['', 'ich9', 'ac97'].includes(sound.model ?? ''))
    found.invalid('.sound', "Sound device type is not supported. Options: 'ich9' or 'ac97'");
  if (sound !== undefined && !sound.name) found.invalid('.sound', 'Sound device requires a name field.');
  if (video !== undefined && devices.autoattachGraphicsDevice === false)
    found.invalid('.video', 'Video configuration is not allowed when autoattachGraphicsDevice is set to false');
}

function validateFilesystems(found: Findings, spec: Spec, config: ClusterConfig): void {
  const gate = 'EnableVirtioFsStorageVolumes';
  const volumes = new Map((spec.volumes ?? []).map((volume) => [volume.name, volume]));
  for (const { name } of spec.domain.devices.filesystems ?? []) {
    const volume = volumes.get(name);
    if (volume === undefined) found.missing('', `${found.path}: no volume is called '${name}'`);
    else if ((volume.persistentVolumeClaim ?? volume.dataVolume) !== undefined && !config.isEnabled(gate))
      found.invalid('', `virtiofs is not allowed: ${gateMissing(gate)}`);
  }
}

function validatePanicDevices(found: Findings, { domain, architecture }: Spec): void {
  const { panicDevices = [] } = domain.devices;
  if (panicDevices.length > 0 && architecture === 's390x') {
    found.invalid('.panicDevices', 'custom panic devices are not supported on s390x architecture');
    return;
  }
  found.each('.panicDevices', panicDevices, (at, { model }) => {
    if (model === undefined) return;
    const supported = Object.hasOwn(PANIC_MODELS, model) ? PANIC_MODELS[model]! : [];
    if (supported.length === 0) at.invalid('.model', `invalid PanicDeviceModel(${model})`);
    else if (!supported.includes(architecture || 'amd64'))
      at.invalid('.model', `panic device model ${model} does not exist on ${architecture || 'amd64'}`);
  });
}
