/** A preset as the instance type and the preference that say the same: for `coracle convert preset`. */

import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { quantityValue, readQuantity } from '@coracle/apimachinery/quantity/quantity';
import {
  type DomainSpec,
  INSTANCETYPE_GROUP,
  INSTANCETYPE_VERSION,
  type InstancetypeSpec,
  type PreferenceSpec,
  type VirtualMachineInstancePreset,
  type VirtualMachineInstancetype,
  type VirtualMachinePreference,
} from '../../kinds/kubevirt.ts';
import { canonicalQuantity } from './amounts.ts';

export interface ConvertedPreset {
  /** Absent when the preset does not say how much memory. */
  readonly instancetype?: VirtualMachineInstancetype;
  /** Absent when there is nothing to prefer. */
  readonly preference?: VirtualMachinePreference;
  /** What has no counterpart, as sentences for people. */
  readonly notes: readonly string[];
}

type Domain = DeepReadonly<Partial<DomainSpec>>;

/** Both objects bear the preset's name and namespace. */
export function convertPreset(preset: DeepReadonly<VirtualMachineInstancePreset>): ConvertedPreset {
  const domain: Domain = preset.spec.domain ?? {};
  const notes: string[] = [];
  const preference: PreferenceSpec = {};
  const { topology, processors } = processorsOf(domain, notes);
  if (Object.keys(topology).length > 0) preference.cpu = topology;
  const instancetype = instancetypeOf(domain, processors, notes);
  fillPreference(domain, preference, notes);
  const { name, namespace } = preset.metadata;
  const apiVersion = `${INSTANCETYPE_GROUP}/${INSTANCETYPE_VERSION}`;
  const metadata = { name: name ?? '', ...(namespace !== undefined && { namespace }) };
  notes.push('A preset selects instances by label; name these objects in spec.instancetype and spec.preference.');
  return {
    ...(instancetype !== undefined && {
      instancetype: { apiVersion, kind: 'VirtualMachineInstancetype', metadata: { ...metadata }, spec: instancetype },
    }),
    ...(Object.keys(preference).length > 0 && {
      preference: { apiVersion, kind: 'VirtualMachinePreference', metadata: { ...metadata }, spec: preference },
    }),
    notes,
  };
}

function processorsOf({ cpu, resources }: Domain, notes: string[]) {
  const [sockets, cores, threads] = [cpu?.sockets || 1, cpu?.cores || 1, cpu?.threads || 1];
  const written = sockets * cores * threads;
  const request = readQuantity(resources?.requests?.['cpu']);
  const processors = written > 1 || request === undefined ? written : Math.max(1, quantityValue(request));
  const layout = written > 1 ? layoutOf(sockets, cores, threads) : {};
  if (layout === undefined)
    notes.push(
      `No topology gives ${sockets} sockets of ${cores} cores with ${threads} threads: ${processors} sockets instead.`,
    );
  const features = (cpu?.features ?? []).map((feature) => ({ ...feature }));
  const topology: NonNullable<PreferenceSpec['cpu']> = {
    ...layout,
    ...(features.length > 0 && { preferredCPUFeatures: features }),
  };
  return { processors, topology };
}

function layoutOf(sockets: number, cores: number, threads: number): NonNullable<PreferenceSpec['cpu']> | undefined {
  if (cores === 1 && threads === 1) return { preferredCPUTopology: 'sockets' };
  if (sockets === 1 && threads === 1) return { preferredCPUTopology: 'cores' };
  if (sockets === 1 && cores === 1) return { preferredCPUTopology: 'threads' };
  const spread = (across: 'SocketsCores' | 'CoresThreads' | 'SocketsCoresThreads', ratio: number) =>
    ({ preferredCPUTopology: 'spread', spreadOptions: { across, ratio } }) as const;
  if (threads === 1) return spread('SocketsCores', cores);
  if (threads !== 2) return undefined;
  return sockets === 1 ? spread('CoresThreads', 2) : spread('SocketsCoresThreads', cores);
}

function instancetypeOf(domain: Domain, processors: number, notes: string[]): InstancetypeSpec | undefined {
  const { cpu, resources, ioThreadsPolicy } = domain;
  const memory = resources?.requests?.['memory'];
  if (memory === undefined) {
    notes.push('The preset requests no memory, so there is no instance type: an instance type must say how much.');
    return undefined;
  }
  for (const resource of Object.keys(resources?.requests ?? {}))
    if (resource !== 'cpu' && resource !== 'memory') notes.push(`The request of ${resource} has no counterpart.`);
  return {
    cpu: {
      guest: processors,
      ...(cpu?.model && { model: cpu.model }),
      ...(cpu?.dedicatedCpuPlacement && { dedicatedCPUPlacement: true }),
      ...(cpu?.isolateEmulatorThread && { isolateEmulatorThread: true }),
      ...(cpu?.numa && { numa: cloneJson<NonNullable<InstancetypeSpec['cpu']['numa']>>(cpu.numa) }),
      ...(cpu?.realtime && { realtime: { ...cpu.realtime } }),
      ...(cpu?.maxSockets && { maxSockets: cpu.maxSockets }),
    },
    memory: { guest: canonicalQuantity(memory) },
    ...(ioThreadsPolicy != null && { ioThreadsPolicy }),
  };
}

function fillPreference(domain: Domain, preference: PreferenceSpec, notes: string[]): void {
  const { firmware, clock, features, devices } = domain;
  const { bios, efi } = firmware?.bootloader ?? {};
  if (efi != null) preference.firmware = { preferredEfi: { ...efi } };
  else if (bios != null)
    preference.firmware = {
      preferredUseBios: true,
      ...(bios.useSerial !== undefined && { preferredUseBiosSerial: bios.useSerial }),
    };
  for (const member of ['uuid', 'serial', 'kernelBoot', 'acpi'] as const)
    if (firmware?.[member] != null) notes.push(`firmware.${member} belongs to one machine and has no counterpart.`);
  if (clock != null) {
    const { utc, timezone, timer } = clock;
    preference.clock = cloneJson<NonNullable<PreferenceSpec['clock']>>({
      ...((utc != null || timezone != null) && {
        preferredClockOffset: { ...(utc != null && { utc }), ...(timezone != null && { timezone }) },
      }),
      ...(timer != null && { preferredTimer: timer }),
    });
  }
  if (features != null) {
    const { acpi, apic, hyperv, kvm, pvspinlock, smm, hypervPassthrough } = features;
    if (hypervPassthrough != null) notes.push('features.hypervPassthrough has no counterpart.');
    preference.features = cloneJson<NonNullable<PreferenceSpec['features']>>({
      ...(acpi != null && { preferredAcpi: acpi }),
      ...(apic != null && { preferredApic: apic }),
      ...(hyperv != null && { preferredHyperv: hyperv }),
      ...(kvm != null && { preferredKvm: kvm }),
      ...(pvspinlock != null && { preferredPvspinlock: pvspinlock }),
      ...(smm != null && { preferredSmm: smm }),
    });
  }
  if (devices?.watchdog != null) notes.push('devices.watchdog has no counterpart: give it to each virtual machine.');
}
