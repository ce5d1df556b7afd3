/**
 * A preference laid over the spec of an instance (kubevirt pkg/instancetype/preference/apply). It fills in what is
 * unset; only ACPI and disableHotplug override, because upstream cannot tell there whether the user said something.
 */

import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import type { PreferenceSpec, VirtualMachineInstanceSpec } from '../../kinds/kubevirt.ts';
import type { AnnotatedMeta } from './apply-instancetype.ts';
import { applyDevicePreferences } from './preferred-devices.ts';

type Preference = DeepReadonly<PreferenceSpec>;

/** Changes `spec` and `metadata`; `spec.domain.devices` must be there. */
export function applyPreferenceSpec(
  preference: Preference,
  spec: VirtualMachineInstanceSpec,
  metadata: AnnotatedMeta,
): void {
  applyCpuFeatures(preference, spec);
  applyDevicePreferences(preference, spec);
  applyFeatures(preference, spec);
  applyFirmware(preference, spec);
  applyMachineType(preference, spec);
  applyClock(preference, spec);
  if (preference.preferredSubdomain !== undefined && !spec.subdomain) spec.subdomain = preference.preferredSubdomain;
  if (preference.preferredTerminationGracePeriodSeconds !== undefined)
    spec.terminationGracePeriodSeconds ??= preference.preferredTerminationGracePeriodSeconds;
  applyArchitecture(preference, spec);
  if (preference.annotations !== undefined)
    metadata.annotations = { ...preference.annotations, ...metadata.annotations };
  if (preference.preferredLaunchSecurity !== undefined && spec.domain.launchSecurity == null)
    spec.domain.launchSecurity = cloneJson(preference.preferredLaunchSecurity);
}

function applyCpuFeatures(preference: Preference, spec: VirtualMachineInstanceSpec): void {
  const preferred = preference.cpu?.preferredCPUFeatures ?? [];
  if (preferred.length === 0) return;
  const own = spec.domain.cpu?.features ?? [];
  const names = new Set(own.map(({ name }) => name));
  const added = preferred.filter(({ name }) => !names.has(name));
  if (added.length === 0) return;
  spec.domain.cpu = { ...spec.domain.cpu, features: [...own, ...added.map((feature) => ({ ...feature }))] };
}

function applyFeatures({ features: preferred }: Preference, spec: VirtualMachineInstanceSpec): void {
  if (preferred === undefined) return;
  spec.domain.features ??= {};
  const { features } = spec.domain;
  // Upstream's acpi is a plain struct: it is there as soon as there are features.
  if (preferred.preferredAcpi !== undefined) features.acpi = { ...preferred.preferredAcpi };
  else features.acpi ??= {};
  if (preferred.preferredApic !== undefined) features.apic ??= { ...preferred.preferredApic };
  if (preferred.preferredHyperv !== undefined && features.hypervPassthrough?.enabled !== true)
    features.hyperv = { ...cloneJson(preferred.preferredHyperv), ...withoutNulls(features.hyperv ?? {}) };
  if (preferred.preferredKvm !== undefined) features.kvm ??= { ...preferred.preferredKvm };
  if (preferred.preferredPvspinlock !== undefined) features.pvspinlock ??= { ...preferred.preferredPvspinlock };
  if (preferred.preferredSmm !== undefined) features.smm ??= { ...preferred.preferredSmm };
}

const withoutNulls = <T extends object>(value: T): T =>
  Object.fromEntries(Object.entries(value).filter(([, member]) => member != null)) as T;

function applyFirmware({ firmware: preferred }: Preference, spec: VirtualMachineInstanceSpec): void {
  if (preferred === undefined) return;
  spec.domain.firmware ??= {};
  const { firmware } = spec.domain;
  firmware.bootloader ??= {};
  const { bootloader } = firmware;
  const noneYet = (): boolean => bootloader.bios == null && bootloader.efi == null;

  if (preferred.preferredUseBios === true && noneYet()) bootloader.bios = {};
  if (preferred.preferredUseBiosSerial !== undefined && bootloader.bios)
    bootloader.bios.useSerial ??= preferred.preferredUseBiosSerial;
  if (preferred.preferredEfi !== undefined && noneYet()) {
    bootloader.efi = { ...preferred.preferredEfi };
    // The deprecated pair below says less, and does not count beside this.
    return;
  }
  if (preferred.preferredUseEfi === true && noneYet()) bootloader.efi = {};
  if (preferred.preferredUseSecureBoot !== undefined && bootloader.efi)
    bootloader.efi.secureBoot ??= preferred.preferredUseSecureBoot;
}

/** Also done when a virtual machine is admitted: the machine type is kept in its template. */
export function applyMachineType({ machine }: Preference, spec: VirtualMachineInstanceSpec): void {
  if (!machine?.preferredMachineType) return;
  spec.domain.machine ??= {};
  spec.domain.machine.type ||= machine.preferredMachineType;
}

/** Also done when a virtual machine is admitted: the architecture is kept in its template. */
export function applyArchitecture(
  { preferredArchitecture }: Preference,
  spec: Pick<VirtualMachineInstanceSpec, 'architecture'>,
): void {
  if (preferredArchitecture) spec.architecture ||= preferredArchitecture;
}

function applyClock({ clock: preferred }: Preference, spec: VirtualMachineInstanceSpec): void {
  if (preferred === undefined) return;
  spec.domain.clock ??= {};
  const { clock } = spec.domain;
  if (preferred.preferredClockOffset !== undefined && clock.utc == null && clock.timezone == null)
    Object.assign(clock, cloneJson(preferred.preferredClockOffset));
  if (preferred.preferredTimer !== undefined) clock.timer ??= cloneJson(preferred.preferredTimer);
}
