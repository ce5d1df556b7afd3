/** Rules about what an architecture has not (kubevirt pkg/virt-api/webhooks: amd64, arm64, s390x). */
import type { VirtualMachineInstanceSpec } from '../../../kinds/kubevirt.ts';
import { ARCHITECTURES, type Architecture } from '../../../rules/machine-defaults/cluster-config.ts';
import { type Cause, invalidValue, unsupportedValue } from './causes.ts';

type Spec = Readonly<VirtualMachineInstanceSpec>;

const VIDEO: Record<Architecture, readonly string[]> = {
  amd64: ['vga', 'cirrus', 'virtio', 'ramfb', 'bochs'],
  arm64: ['virtio', 'ramfb'],
  s390x: ['virtio'],
};
const ARM64_BUSES = ['', 'virtio', 'scsi'];

/** The architecture is one we know, and nothing asks for what it lacks. Only instances are held to this. */
export function validateArchitecture(path: string, spec: Spec): Cause[] {
  const { architecture = '' } = spec;
  switch (architecture) {
    case 'amd64':
      return [...validateWatchdog(path, spec, 'i6300esb'), ...validateVideo(path, spec, architecture)];
    case 's390x':
      return [...validateWatchdog(path, spec, 'diag288'), ...validateVideo(path, spec, architecture)];
    case 'arm64':
      return [...validateArm64(path, spec), ...validateVideo(path, spec, architecture)];
    default: {
      const known = ARCHITECTURES.join(', ');
      return [invalidValue(`${path}.architecture`, `unsupported architecture: ${architecture} (there are ${known})`)];
    }
  }
}

const WATCHDOGS = ['i6300esb', 'diag288'] as const;

function validateWatchdog(path: string, { domain, architecture }: Spec, only: (typeof WATCHDOGS)[number]): Cause[] {
  const { watchdog } = domain.devices;
  if (watchdog === undefined || WATCHDOGS.every((type) => (watchdog[type] !== undefined) === (type === only)))
    return [];
  const text = `${architecture} only supports the ${only} watchdog device`;
  return [unsupportedValue(`${path}.domain.devices.watchdog`, text)];
}

function validateVideo(path: string, { domain }: Spec, architecture: Architecture): Cause[] {
  const { video } = domain.devices;
  if (video === undefined || VIDEO[architecture].includes(video.type ?? '')) return [];
  const text = `video model '${video.type ?? ''}' is not supported on ${architecture} architecture`;
  return [unsupportedValue(`${path}.domain.devices.video.type`, text)];
}

function validateArm64(path: string, { domain }: Spec): Cause[] {
  const { cpu, devices, firmware, launchSecurity } = domain;
  const causes: Cause[] = [];
  const refuse = (at: string, what: string): void => {
    causes.push(unsupportedValue(`${path}.domain.${at}`, `arm64 does not support ${what}`));
  };
  const { bios, efi } = firmware?.bootloader ?? {};
  if (bios !== undefined) refuse('firmware.bootloader.bios', 'BIOS boot: it needs UEFI boot');
  // What is not said is on.
  if (efi !== undefined && efi.secureBoot !== false) {
    refuse('firmware.bootloader.efi.secureboot', 'UEFI secure boot: secureBoot must be false');
  }
  if (cpu?.model && cpu.model !== 'host-passthrough') refuse('cpu.model', 'any processor model but host-passthrough');
  for (const [i, disk] of (devices.disks ?? []).entries()) {
    for (const type of ['disk', 'cdrom', 'lun'] as const) {
      const bus = disk[type]?.bus ?? '';
      if (!ARM64_BUSES.includes(bus)) refuse(`devices.disks[${i}].${type}.bus`, `the bus ${bus}: use virtio or scsi`);
    }
  }
  if (devices.watchdog !== undefined) refuse('devices.watchdog', 'a watchdog device');
  if (devices.sound !== undefined) refuse('devices.sound', 'a sound device');
  if (launchSecurity !== undefined) refuse('launchSecurity', 'launch security');
  return causes;
}
