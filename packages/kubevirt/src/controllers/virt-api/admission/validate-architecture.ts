/** Rules about what an architecture has not (kubevirt pkg/virt-api/webhooks: amd64, arm64, s390x). */
import type { VirtualMachineInstanceSpec } from '../../../kinds/kubevirt.ts';
import { ARCHITECTURES, type Architecture } from '../../../rules/machine-defaults/cluster-config.ts';
import type { Findings } from './causes.ts';

type Spec = Readonly<VirtualMachineInstanceSpec>;

const VIDEO: Record<Architecture, readonly string[]> = {
  amd64: ['vga', 'cirrus', 'virtio', 'ramfb', 'bochs'],
  arm64: ['virtio', 'ramfb'],
  s390x: ['virtio'],
};
const ARM64_BUSES = ['', 'virtio', 'scsi'];

/** The architecture is one we know, and nothing asks for what it lacks. Only instances are held to this. */
export function validateArchitecture(found: Findings, spec: Spec): void {
  const { architecture = '' } = spec;
  const known = ARCHITECTURES.find((each) => each === architecture);
  if (known === undefined) {
    const text = `unsupported architecture: ${architecture} (there are ${ARCHITECTURES.join(', ')})`;
    found.invalid('.architecture', text);
    return;
  }
  if (known === 'arm64') validateArm64(found, spec);
  else validateWatchdog(found, spec, known === 's390x' ? 'diag288' : 'i6300esb');
  const { video } = spec.domain.devices;
  if (video === undefined || VIDEO[known].includes(video.type ?? '')) return;
  const text = `video model '${video.type ?? ''}' is not supported on ${known} architecture`;
  found.unsupported('.domain.devices.video.type', text);
}

const WATCHDOGS = ['i6300esb', 'diag288'] as const;

function validateWatchdog(found: Findings, { domain, architecture }: Spec, only: (typeof WATCHDOGS)[number]): void {
  const { watchdog } = domain.devices;
  if (watchdog === undefined || WATCHDOGS.every((type) => (watchdog[type] !== undefined) === (type === only))) return;
  found.unsupported('.domain.devices.watchdog', `${architecture} only supports the ${only} watchdog device`);
}

function validateArm64(found: Findings, { domain }: Spec): void {
  const { cpu, devices, firmware, launchSecurity } = domain;
  const refuse = (member: string, what: string): void =>
    found.unsupported(`.domain.${member}`, `arm64 does not support ${what}`);
  const { bios, efi } = firmware?.bootloader ?? {};
  if (bios !== undefined) refuse('firmware.bootloader.bios', 'BIOS boot: it needs UEFI boot');
  // What is not said is on.
  if (efi !== undefined && efi.secureBoot !== false)
    refuse('firmware.bootloader.efi.secureboot', 'UEFI secure boot: secureBoot must be false');
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
}
