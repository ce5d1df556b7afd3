/** The device part of a preference (kubevirt pkg/instancetype/preference/apply: device, disk, interface). */

import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import type {
  DevicePreferences,
  Disk,
  Interface,
  PreferenceSpec,
  VirtualMachineInstanceSpec,
} from '../../kinds/kubevirt.ts';

type Preferred = DeepReadonly<DevicePreferences>;

const AUTOATTACH = [
  ['preferredAutoattachGraphicsDevice', 'autoattachGraphicsDevice'],
  ['preferredAutoattachMemBalloon', 'autoattachMemBalloon'],
  ['preferredAutoattachPodInterface', 'autoattachPodInterface'],
  ['preferredAutoattachSerialConsole', 'autoattachSerialConsole'],
  ['preferredAutoattachInputDevice', 'autoattachInputDevice'],
] as const;

/**
 * The autoattach switches alone. At the start of an instance they come first, so that the input device and the default
 * network follow the preference. Changes `spec`.
 */
export function applyAutoattachPreferences(
  preference: DeepReadonly<PreferenceSpec>,
  spec: VirtualMachineInstanceSpec,
): void {
  const preferred = preference.devices;
  if (preferred === undefined) return;
  const { devices } = spec.domain;
  for (const [from, to] of AUTOATTACH) if (preferred[from] !== undefined) devices[to] ??= preferred[from];
}

/** Changes `spec`; `spec.domain.devices` must be there. */
export function applyDevicePreferences(
  preference: DeepReadonly<PreferenceSpec>,
  spec: VirtualMachineInstanceSpec,
): void {
  const preferred = preference.devices;
  if (preferred === undefined) return;
  const { devices } = spec.domain;
  if (preferred.preferredUseVirtioTransitional !== undefined)
    devices.useVirtioTransitional ??= preferred.preferredUseVirtioTransitional;
  if (preferred.preferredBlockMultiQueue !== undefined) devices.blockMultiQueue ??= preferred.preferredBlockMultiQueue;
  if (preferred.preferredNetworkInterfaceMultiQueue !== undefined)
    devices.networkInterfaceMultiqueue ??= preferred.preferredNetworkInterfaceMultiQueue;
  if (preferred.preferredDisableHotplug === true) devices.disableHotplug = true;
  else if (preferred.preferredDisableHotplug === false) delete devices.disableHotplug;
  if (preferred.preferredSoundModel && devices.sound) devices.sound.model ||= preferred.preferredSoundModel;
  if (preferred.preferredRng !== undefined) devices.rng ??= {};
  if (preferred.preferredTPM !== undefined) devices.tpm ??= { ...preferred.preferredTPM };
  if (preferred.preferredVideoType !== undefined) {
    devices.video ??= {};
    devices.video.type ||= preferred.preferredVideoType;
  }
  applyAutoattachPreferences(preference, spec);
  for (const disk of devices.disks ?? []) applyToDisk(preferred, disk);
  for (const one of devices.interfaces ?? []) applyToInterface(preferred, one, spec);
  for (const input of devices.inputs ?? []) {
    if (preferred.preferredInputBus) input.bus ||= preferred.preferredInputBus;
    if (preferred.preferredInputType) input.type ||= preferred.preferredInputType;
  }
  applyPanicDevices(preferred, spec);
}

function applyToDisk(preferred: Preferred, disk: Disk): void {
  if (disk.disk == null && disk.cdrom == null && disk.lun == null) disk.disk = {};
  if (disk.disk) {
    if (preferred.preferredDiskBus) disk.disk.bus ||= preferred.preferredDiskBus;
    if (preferred.preferredDiskBlockSize !== undefined)
      disk.blockSize ??= cloneJson(preferred.preferredDiskBlockSize) as NonNullable<Disk['blockSize']>;
    if (preferred.preferredDiskCache) disk.cache ||= preferred.preferredDiskCache;
    if (preferred.preferredDiskIO) disk.io ||= preferred.preferredDiskIO;
    if (preferred.preferredDiskDedicatedIoThread !== undefined && disk.disk.bus === 'virtio')
      disk.dedicatedIOThread ??= preferred.preferredDiskDedicatedIoThread;
  } else if (disk.cdrom) {
    if (preferred.preferredCdromBus) disk.cdrom.bus ||= preferred.preferredCdromBus;
  } else if (disk.lun && preferred.preferredLunBus) {
    disk.lun.bus ||= preferred.preferredLunBus;
  }
}

const BINDINGS = ['bridge', 'slirp', 'masquerade', 'sriov', 'macvtap', 'passt', 'passtBinding', 'binding'] as const;

function applyToInterface(preferred: Preferred, one: Interface, spec: VirtualMachineInstanceSpec): void {
  if (preferred.preferredInterfaceModel) one.model ||= preferred.preferredInterfaceModel;
  if (preferred.preferredInterfaceMasquerade === undefined) return;
  if (BINDINGS.some((binding) => one[binding] != null)) return;
  const network = (spec.networks ?? []).find(({ name }) => name === one.name);
  if (network?.pod != null) one.masquerade = {};
}

function applyPanicDevices({ preferredPanicDeviceModel: model }: Preferred, spec: VirtualMachineInstanceSpec): void {
  if (model === undefined) return;
  const { devices } = spec.domain;
  if ((devices.panicDevices?.length ?? 0) === 0) devices.panicDevices = [{ model }];
  else for (const device of devices.panicDevices!) device.model ??= model;
}
