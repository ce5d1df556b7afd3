/**
 * What is filled into an instance when it is created, in upstream's order (kubevirt pkg/defaults): later steps read
 * what earlier ones wrote. Every function changes the object it is given; callers own it.
 */

import { controllerOf } from '@coracle/apimachinery/meta/controller-reference';
import { compareQuantity, quantityValue, readQuantity } from '@coracle/apimachinery/quantity/quantity';
import type {
  GuestProbe,
  VirtualMachine,
  VirtualMachineInstance,
  VirtualMachineInstanceSpec,
} from '../../kinds/kubevirt.ts';
import { isPresent } from './amounts.ts';
import { type ClusterConfig, DEFAULT_CPU_REQUEST } from './cluster-config.ts';
import { addHypervDependencies, fillSwitches } from './feature-defaults.ts';
import { addDefaultNetwork, addDisksForVolumes } from './implicit-devices.ts';
import { setHotplugLimits } from './live-update.ts';

/** Architecture and machine type of the template: what a virtual machine keeps for good. */
export function setVirtualMachineDefaults(vm: VirtualMachine, config: ClusterConfig): void {
  if (vm.spec.template.spec !== undefined) setMachine(vm.spec.template.spec, config);
}

/**
 * Everything an instance needs beside its identity.
 * @throws DefaultsError when the cluster's settings contradict each other
 */
export function setInstanceDefaults(vmi: VirtualMachineInstance, config: ClusterConfig): void {
  setInstanceSpecDefaults(vmi.spec, config);
  // The guest of a virtual machine can be given sockets later, also where its template leaves them open.
  if (controllerOf(vmi, 'VirtualMachine')) fillMissingAxes(vmi.spec);
  setPullPolicy(vmi.spec.domain.firmware?.kernelBoot?.container);
  setDeviceDefaults(vmi.spec);
  fillSwitches(vmi.spec);
  setProbeDefaults(vmi.spec.livenessProbe);
  setProbeDefaults(vmi.spec.readinessProbe);
  addHypervDependencies(vmi.spec);
  setArchitectureDevices(vmi.spec);
  setCpuModel(vmi.spec, config);
  setInitialStatus(vmi);
  setHotplugLimits(vmi, config);
}

/**
 * The part of the defaults that a virtual machine's template is also validated and expanded with, and nothing more than
 * upstream's: an expansion shows them field by field. A topology that is written in part stays as it is.
 * @throws DefaultsError
 */
export function setInstanceSpecDefaults(spec: VirtualMachineInstanceSpec, config: ClusterConfig): void {
  setMachine(spec, config);
  setCpuRequest(spec, config);
  setGuestMemory(spec);
  setTopology(spec);
  for (const { containerDisk } of spec.volumes ?? []) setPullPolicy(containerDisk);
  spec.evictionStrategy ??= config.evictionStrategy;
  addDefaultNetwork(spec, config);
  addDisksForVolumes(spec);
}

function setMachine(spec: VirtualMachineInstanceSpec, config: ClusterConfig): void {
  spec.architecture ||= config.defaultArchitecture;
  spec.domain.machine ??= {};
  spec.domain.machine.type ||= config.machineType(spec.architecture);
}

function setCpuRequest(spec: VirtualMachineInstanceSpec, config: ClusterConfig): void {
  spec.domain.resources ??= {};
  const { resources } = spec.domain;
  const limit = resources.limits?.['cpu'];
  if (limit !== undefined && isPresent(limit) && !isPresent(resources.requests?.['cpu']))
    resources.requests = { ...resources.requests, cpu: limit };
  // The default of 100m is not written down: the launcher pod gets its request from the number of processors.
  const clusterRequest = readQuantity(config.cpuRequest);
  const isDefault =
    clusterRequest === undefined || compareQuantity(clusterRequest, readQuantity(DEFAULT_CPU_REQUEST)!) === 0;
  if (isDefault || resources.requests?.['cpu'] !== undefined || spec.domain.cpu?.dedicatedCpuPlacement === true) return;
  resources.requests = { ...resources.requests, cpu: config.cpuRequest };
}

function setGuestMemory(spec: VirtualMachineInstanceSpec): void {
  spec.domain.memory ??= {};
  const { memory } = spec.domain;
  if (memory.guest !== undefined) return;
  const request = spec.domain.resources?.requests?.['memory'];
  const limit = spec.domain.resources?.limits?.['memory'];
  const page = memory.hugepages?.pageSize;
  if (request !== undefined && isPresent(request)) memory.guest = request;
  else if (limit !== undefined && isPresent(limit)) memory.guest = limit;
  else if (page !== undefined && readQuantity(page) !== undefined) memory.guest = page;
}

function setTopology(spec: VirtualMachineInstanceSpec): void {
  spec.domain.cpu ??= {};
  const { cpu } = spec.domain;
  if (cpu.cores || cpu.sockets || cpu.threads) return;
  const amount = readQuantity(spec.domain.resources?.limits?.['cpu'] ?? spec.domain.resources?.requests?.['cpu']);
  // Sockets, because they are what can be plugged later.
  cpu.sockets = amount === undefined ? 1 : Math.min(Math.max(1, quantityValue(amount)), MAX_INT32);
  cpu.cores = 1;
  cpu.threads = 1;
}

/** What the field holds. */
const MAX_INT32 = 2 ** 31 - 1;

/** An axis that is not written counts as one: an instance says so, because its status and its limits are made of it. */
function fillMissingAxes({ domain: { cpu } }: VirtualMachineInstanceSpec): void {
  if (cpu === undefined) return;
  cpu.cores ||= 1;
  cpu.sockets ||= 1;
  cpu.threads ||= 1;
}

/** `:latest`, or neither tag nor digest: the image may change under its name. None at all is refused after this. */
const defaultPullPolicy = (image = ''): string =>
  image.endsWith(':latest') || !/[:@]/.test(image) ? 'Always' : 'IfNotPresent';

function setPullPolicy(of: { image?: string; imagePullPolicy?: string } | undefined): void {
  if (of !== undefined) of.imagePullPolicy ||= defaultPullPolicy(of.image);
}

function setDeviceDefaults(spec: VirtualMachineInstanceSpec): void {
  const { devices } = spec.domain;
  for (const disk of devices.disks ?? []) {
    if (disk.disk === undefined && disk.cdrom === undefined && disk.lun === undefined) disk.disk = {};
    if (disk.cdrom !== undefined) {
      disk.cdrom.readonly ??= true;
      disk.cdrom.tray ||= 'closed';
    }
  }
  for (const input of devices.inputs ?? []) {
    input.bus ||= 'usb';
    input.type ||= 'tablet';
  }
}

function setProbeDefaults(probe: GuestProbe | undefined): void {
  if (probe === undefined) return;
  const atLeastOne = (value: number | undefined, fallback: number): number => ((value ?? 0) < 1 ? fallback : value!);
  probe.timeoutSeconds = atLeastOne(probe.timeoutSeconds, 1);
  probe.periodSeconds = atLeastOne(probe.periodSeconds, 10);
  probe.successThreshold = atLeastOne(probe.successThreshold, 1);
  probe.failureThreshold = atLeastOne(probe.failureThreshold, 3);
}

function setArchitectureDevices(spec: VirtualMachineInstanceSpec): void {
  const { devices } = spec.domain;
  const bus = spec.architecture === 'amd64' ? 'sata' : 'virtio';
  for (const { disk, cdrom, lun } of devices.disks ?? []) {
    if (disk !== undefined) disk.bus ||= bus;
    // virtio has no CD-ROM drive.
    if (cdrom !== undefined) cdrom.bus ||= bus === 'virtio' ? 'scsi' : bus;
    if (lun !== undefined) lun.bus ||= bus;
  }
  if (devices.watchdog !== undefined) {
    const kind = spec.architecture === 's390x' ? 'diag288' : 'i6300esb';
    devices.watchdog[kind] ??= {};
    devices.watchdog[kind].action ||= 'reset';
  }
  if (spec.architecture === 'arm64') {
    // arm64 machines boot by UEFI only, and the usual firmware has no signed variant.
    spec.domain.firmware ??= {};
    spec.domain.firmware.bootloader ??= { efi: {} };
    const { efi } = spec.domain.firmware.bootloader;
    if (efi !== undefined) efi.secureBoot ??= false;
  }
}

function setCpuModel(spec: VirtualMachineInstanceSpec, config: ClusterConfig): void {
  spec.domain.cpu ??= {};
  // The cluster's model is one of x86, and the only one of arm64 is the host's.
  spec.domain.cpu.model ||= spec.architecture === 'arm64' ? 'host-passthrough' : config.cpuModel || 'host-model';
}

function setInitialStatus(vmi: VirtualMachineInstance): void {
  const { cpu, memory } = vmi.spec.domain;
  vmi.status ??= {};
  const { status } = vmi;
  // A struct that Go never leaves out.
  status.guestOSInfo ??= {};
  const guest = memory?.guest;
  if (guest !== undefined) status.memory = { guestAtBoot: guest, guestCurrent: guest, guestRequested: guest };
  if (cpu !== undefined && status.currentCPUTopology === undefined) {
    const { cores, sockets, threads } = cpu;
    status.currentCPUTopology = { ...(cores && { cores }), ...(sockets && { sockets }), ...(threads && { threads }) };
  }
}
