/** Rules about disks and the other devices of a guest. */

import { checkLabelName } from '@coracle/apimachinery/meta/name-rules';
import type { Disk, VirtualMachineInstanceSpec } from '../../../kinds/kubevirt.ts';
import type { ClusterConfig } from '../../../rules/machine-defaults/cluster-config.ts';
import {
  addAll,
  type Cause,
  countPresent,
  invalidValue,
  missingValue,
  requiredValue,
  unsupportedValue,
  type ValidatedSpec,
  validateEach,
} from './causes.ts';
import { gateMissing, validateSerial } from './validate-resources.ts';

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

export function validateDevices(causes: Cause[], { path, spec, config }: ValidatedSpec): void {
  addAll(causes, validateBootOrder(path, spec));
  validateDisks(causes, `${path}.domain.devices.disks`, spec.domain.devices.disks);
  addAll(causes, validateDiskVolumes(path, spec, config));
  addAll(causes, validateIoThreads(path, spec));
  validateInputs(causes, path, spec);
  addAll(causes, validateOtherDevices(path, spec, config));
  validateFilesystems(causes, { path, spec, config });
  validatePanicDevices(causes, path, spec);
}

/** Each disk by itself and next to those before it. `path` is that of the list. */
export function validateDisks(causes: Cause[], path: string, disks: readonly Readonly<Disk>[] = []): void {
  const firstOf = new Map<string, number>();
  const validate = (disk: Readonly<Disk>, i: number): Cause[] => {
    const twin = firstOf.get(disk.name);
    if (twin === undefined) firstOf.set(disk.name, i);
    return validateDisk(`${path}[${i}]`, disk, twin === undefined ? undefined : `${path}[${twin}]`);
  };
  validateEach(causes, disks, validate);
}

function validateBootOrder(path: string, spec: Spec): Cause[] {
  const causes: Cause[] = [];
  const seen = new Set<number>();
  const { disks, interfaces } = spec.domain.devices;
  for (const [list, devices] of [
    ['disks', disks],
    ['interfaces', interfaces],
  ] as const) {
    devices?.forEach(({ bootOrder }, i) => {
      if (bootOrder === undefined) return;
      const device = `${path}.domain.devices.${list}[${i}]`;
      if (bootOrder < 1) {
        causes.push(invalidValue(`${device}.bootOrder`, `${device} must have a boot order > 0, if supplied`));
      } else if (seen.has(bootOrder)) {
        const field = `${device}.bootOrder`;
        causes.push(invalidValue(field, `Boot order for ${field} already set for a different device.`));
      }
      seen.add(bootOrder);
    });
  }
  return causes;
}

const targetOf = (disk: Readonly<Disk>): { type: 'disk' | 'lun' | 'cdrom' | ''; bus: string } =>
  disk.disk !== undefined
    ? { type: 'disk', bus: disk.disk.bus ?? '' }
    : disk.lun !== undefined
      ? { type: 'lun', bus: disk.lun.bus ?? '' }
      : disk.cdrom !== undefined
        ? { type: 'cdrom', bus: disk.cdrom.bus ?? '' }
        : { type: '', bus: '' };

function validateDisk(field: string, disk: Readonly<Disk>, twin: string | undefined): Cause[] {
  const causes: Cause[] = [];
  if (twin !== undefined) {
    causes.push(invalidValue(`${field}.name`, `${field} and ${twin} must not have the same Name.`));
  }
  // The name becomes that of a container.
  causes.push(...checkLabelName(disk.name).map((message) => invalidValue(`${field}.name`, message)));
  if (countPresent([disk.disk, disk.lun, disk.cdrom]) > 1) {
    causes.push(invalidValue(field, `${field} can only have a single target type defined`));
  }
  causes.push(...validateBus(field, disk), ...validatePciAddress(field, disk));
  causes.push(...validateSerial(`${field}.serial`, disk.serial));
  if (!CACHES.includes(disk.cache ?? '')) {
    causes.push(invalidValue(`${field}.cache`, `${field}.cache has invalid value ${disk.cache}`));
  }
  if (!IO_MODES.includes(disk.io ?? '')) {
    causes.push(
      unsupportedValue(
        `${field}.io`,
        `Disk IO mode for ${field} is not supported. Supported modes are: ${IO_MODES.slice(1).join(', ')}.`,
      ),
    );
  }
  if (disk.errorPolicy !== undefined && !ERROR_POLICIES.includes(disk.errorPolicy)) {
    causes.push(
      invalidValue(
        `${field}.errorPolicy`,
        `${field}.errorPolicy has invalid value ${JSON.stringify(disk.errorPolicy)}`,
      ),
    );
  }
  causes.push(...validateBlockSize(`${field}.blockSize`, disk));
  return causes;
}

function validateBus(field: string, disk: Readonly<Disk>): Cause[] {
  const { type, bus } = targetOf(disk);
  const causes: Cause[] = [];
  if (disk.lun?.reservation && disk.lun.bus !== 'scsi') {
    causes.push(
      invalidValue(`${field}.lun.bus`, `Persistent reservation requires a SCSI bus, but ${bus} was specified`),
    );
  }
  if (bus === '') return causes;
  const busField = `${field}.${type}.bus`;
  if (bus === 'ide') causes.push(invalidValue(busField, 'IDE bus is not supported'));
  else if (!BUSES.includes(bus)) {
    causes.push(
      invalidValue(busField, `${field} is set with an unrecognized bus ${bus}, must be one of: ${BUSES.join(', ')}`),
    );
  } else if (bus === 'virtio' && type === 'cdrom') {
    causes.push(invalidValue(busField, `Bus type ${bus} is invalid for CD-ROM device`));
  } else if (bus === 'sata' && disk.disk?.readonly) {
    causes.push(invalidValue(busField, `${bus} hard-disks do not support read-only.`));
  }
  if (disk.dedicatedIOThread && bus !== 'virtio') {
    causes.push(unsupportedValue(field, `IOThreads are not supported for disks on a ${bus} bus`));
  }
  return causes;
}

function validatePciAddress(field: string, disk: Readonly<Disk>): Cause[] {
  const address = disk.disk?.pciAddress;
  if (!address) return [];
  const causes: Cause[] = [];
  const at = `${field}.disk.pciAddress`;
  if (disk.disk?.bus !== 'virtio') {
    causes.push(invalidValue(at, `disk ${field}.name - setting a PCI address is only possible with bus type virtio.`));
  }
  if (!isPciAddress(address)) {
    causes.push(invalidValue(at, `disk ${field}.name has malformed PCI address (${address}).`));
  }
  return causes;
}

function validateBlockSize(field: string, disk: Readonly<Disk>): Cause[] {
  const { custom, matchVolume } = disk.blockSize ?? {};
  if (custom === undefined) return [];
  if (matchVolume !== undefined && matchVolume.enabled !== false) {
    return [invalidValue(field, "Block size matching can't be enabled together with a custom value")];
  }
  const { logical = 0, physical = 0, discardGranularity } = custom;
  const at = (name: string): string => `${field}.custom.${name}`;
  if (logical > physical) {
    return [
      invalidValue(
        at('logical'),
        `Logical size ${logical} must be the same or less than the physical size of ${physical}`,
      ),
    ];
  }
  if (targetOf(disk).bus === 'sata' && logical !== MIN_BLOCK) {
    return [invalidValue(at('logical'), `Logical size ${logical} must be ${MIN_BLOCK} for SATA devices`)];
  }
  if (discardGranularity !== undefined && logical !== 0 && discardGranularity % logical !== 0) {
    return [
      invalidValue(
        at('discardGranularity'),
        `Discard granularity ${discardGranularity} must be multiples of logical size ${logical}`,
      ),
    ];
  }
  return [['logical', logical] as const, ['physical', physical] as const].flatMap(([name, size]) => {
    const wrong =
      size < MIN_BLOCK
        ? `is less than the supported minimum size of ${MIN_BLOCK}`
        : size > MAX_BLOCK
          ? `is greater than the supported maximum size of ${MAX_BLOCK}`
          : (size & (size - 1)) !== 0
            ? 'is not a power of 2'
            : '';
    return wrong === '' ? [] : [invalidValue(at(name), `Provided size of ${size} ${wrong}`)];
  });
}

function validateDiskVolumes(path: string, spec: Spec, config: ClusterConfig): Cause[] {
  const causes: Cause[] = [];
  const volumes = new Map((spec.volumes ?? []).map((volume) => [volume.name, volume]));
  spec.domain.devices.disks?.forEach((disk, i) => {
    const field = `${path}.domain.devices.disks[${i}]`;
    const volume = volumes.get(disk.name);
    if (volume === undefined) {
      if (disk.cdrom === undefined) {
        causes.push(invalidValue(`${field}.name`, `${field}.Name '${disk.name}' not found.`));
      } else if (!config.isEnabled('DeclarativeHotplugVolumes')) {
        causes.push(
          invalidValue(
            `${field}.name`,
            `an empty CD-ROM drive needs a gate: ${gateMissing('DeclarativeHotplugVolumes')}`,
          ),
        );
      }
      return;
    }
    if (disk.lun !== undefined && volume.persistentVolumeClaim === undefined && volume.dataVolume === undefined) {
      causes.push(
        invalidValue(
          `${field}.lun`,
          `${field}.lun can only be mapped to a DataVolume or PersistentVolumeClaim volume.`,
        ),
      );
    }
    if (disk.lun?.reservation && !config.persistentReservation) {
      causes.push(
        invalidValue(
          `${path}.domain.devices.disks.luns.reservation`,
          'persistent reservations are off: set configuration.persistentReservationConfiguration.enabled of the KubeVirt object',
        ),
      );
    }
    if (volume.downwardMetrics === undefined) return;
    if (disk.disk === undefined) {
      causes.push(
        requiredValue(`${field}.disk`, `DownwardMetrics volume must be mapped to a disk, but ${field}.disk is not set`),
      );
    } else if ((disk.disk.bus || 'virtio') !== 'virtio') {
      causes.push(
        invalidValue(
          `${field}.disk.bus`,
          `DownwardMetrics volume must be on the virtio bus, but ${field}.disk.bus is ${disk.disk.bus}`,
        ),
      );
    }
  });
  return causes;
}

function validateIoThreads(path: string, spec: Spec): Cause[] {
  const { ioThreadsPolicy, ioThreads } = spec.domain;
  if (ioThreadsPolicy === undefined) return [];
  if (!IO_THREADS_POLICIES.includes(ioThreadsPolicy)) {
    return [invalidValue(`${path}.domain.ioThreadsPolicy`, `Invalid IOThreadsPolicy (${ioThreadsPolicy})`)];
  }
  return ioThreadsPolicy === 'supplementalPool' && (ioThreads?.supplementalPoolThreadCount ?? 0) < 1
    ? [
        invalidValue(
          `${path}.domain.ioThreads.count`,
          'the number of I/O threads must be given and positive for the supplementalPool policy',
        ),
      ]
    : [];
}

const validateInputs = (causes: Cause[], path: string, spec: Spec): void =>
  validateEach(causes, spec.domain.devices.inputs ?? [], ({ bus, type }, i) => {
    const field = `${path}.domain.devices.inputs[${i}]`;
    return [
      ...(['', 'virtio', 'usb'].includes(bus ?? '')
        ? []
        : [invalidValue(`${field}.bus`, 'Input device can have only virtio or usb bus.')]),
      ...(type === 'tablet' ? [] : [invalidValue(`${field}.type`, 'Input device can have only tablet type.')]),
    ];
  });

function validateOtherDevices(path: string, spec: Spec, config: ClusterConfig): Cause[] {
  const causes: Cause[] = [];
  const { devices } = spec.domain;
  const gate = (used: boolean, name: Parameters<ClusterConfig['isEnabled']>[0], field: string): void => {
    if (used && !config.isEnabled(name)) causes.push(invalidValue(`${path}.${field}`, gateMissing(name)));
  };
  const hasClaims = (list: readonly { claimName?: string }[] | undefined): boolean =>
    (list?.length ?? 0) > 0 && list!.every(({ claimName }) => claimName !== undefined);
  gate(
    (devices.hostDevices?.length ?? 0) > 0 &&
      !(hasClaims(devices.hostDevices) && config.isEnabled('HostDevicesWithDRA')),
    'HostDevices',
    'domain.devices.hostDevices',
  );
  gate(devices.autoattachVSOCK === true, 'VSOCK', 'domain.devices.autoattachVSOCK');
  gate(devices.downwardMetrics !== undefined, 'DownwardMetrics', 'domain.devices.downwardMetrics');

  const displays = (devices.gpus ?? []).filter(({ virtualGPUOptions }) => {
    const display = virtualGPUOptions?.display;
    return display !== undefined && display.enabled !== false && (display.ramFB === undefined || display.ramFB.enabled);
  });
  if (displays.length > 1) {
    causes.push(invalidValue(`${path}.domain.devices.gpus`, 'configuring multiple displays with ramfb is not valid'));
  }
  const { sound, video } = devices;
  if (sound !== undefined && !['', 'ich9', 'ac97'].includes(sound.model ?? '')) {
    causes.push(
      invalidValue(`${path}.domain.devices.sound`, "Sound device type is not supported. Options: 'ich9' or 'ac97'"),
    );
  }
  if (sound !== undefined && !sound.name) {
    causes.push(invalidValue(`${path}.domain.devices.sound`, 'Sound device requires a name field.'));
  }
  if (video !== undefined && devices.autoattachGraphicsDevice === false) {
    causes.push(
      invalidValue(
        `${path}.domain.devices.video`,
        'Video configuration is not allowed when autoattachGraphicsDevice is set to false',
      ),
    );
  }
  return causes;
}

function validateFilesystems(causes: Cause[], { path, spec, config }: ValidatedSpec): void {
  const field = `${path}.domain.devices.filesystems`;
  const volumes = new Map((spec.volumes ?? []).map((volume) => [volume.name, volume]));
  validateEach(causes, spec.domain.devices.filesystems ?? [], ({ name }) => {
    const volume = volumes.get(name);
    if (volume === undefined) return [missingValue(field, `${field}: no volume is called '${name}'`)];
    const isStorage = volume.persistentVolumeClaim !== undefined || volume.dataVolume !== undefined;
    return isStorage && !config.isEnabled('EnableVirtioFsStorageVolumes')
      ? [invalidValue(field, `virtiofs is not allowed: ${gateMissing('EnableVirtioFsStorageVolumes')}`)]
      : [];
  });
}

function validatePanicDevices(causes: Cause[], path: string, spec: Spec): void {
  const { panicDevices = [] } = spec.domain.devices;
  if (panicDevices.length > 0 && spec.architecture === 's390x') {
    const text = 'custom panic devices are not supported on s390x architecture';
    causes.push(invalidValue(`${path}.domain.devices.panicDevices`, text));
    return;
  }
  validateEach(causes, panicDevices, ({ model }, i) => {
    const field = `${path}.domain.devices.panicDevices[${i}].model`;
    if (model === undefined) return [];
    const supported = Object.hasOwn(PANIC_MODELS, model) ? PANIC_MODELS[model]! : [];
    if (supported.length === 0) return [invalidValue(field, `invalid PanicDeviceModel(${model})`)];
    const architecture = spec.architecture || 'amd64';
    return supported.includes(architecture)
      ? []
      : [invalidValue(field, `panic device model ${model} does not exist on ${architecture}`)];
  });
}
