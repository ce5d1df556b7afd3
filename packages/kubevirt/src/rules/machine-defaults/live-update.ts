/** How much processor and memory may be plugged while a guest runs. */

import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import {
  compareQuantity,
  formatQuantity,
  quantityFromBytes,
  quantityValue,
  readQuantity,
} from '@coracle/apimachinery/quantity/quantity';
import type { QuantityValue, VirtualMachineInstance, VirtualMachineInstanceSpec } from '../../kinds/kubevirt.ts';
import type { ClusterConfig } from './cluster-config.ts';

/** More virtual processors than any machine type takes. */
const MAX_VCPUS = 512;
const MIB = 2 ** 20;
const MIN_PLUGGABLE_GUEST = 1024 * MIB;

/** Fills maxSockets and maxGuest where the cluster updates guests live. Changes `vmi`. */
export function setHotplugLimits(vmi: VirtualMachineInstance, config: ClusterConfig): void {
  if (!config.liveUpdate || vmi.spec.architecture === 'arm64') return;
  setMaxSockets(vmi.spec, config);
  const { memory } = vmi.spec.domain;
  if (memory === undefined || memory.maxGuest !== undefined) return;
  const maxGuest = config.maxGuest ?? scaledGuest(memory.guest, config.maxHotplugRatio);
  if (maxGuest !== undefined && memoryHotplugObstacle(vmi.spec, maxGuest) === undefined) memory.maxGuest = maxGuest;
}

function setMaxSockets(spec: VirtualMachineInstanceSpec, config: ClusterConfig): void {
  const { cpu } = spec.domain;
  if (cpu === undefined || (cpu.maxSockets ?? 0) !== 0) return;
  const sockets = cpu.sockets ?? 0;
  const perSocket = (cpu.cores || 1) * (cpu.threads || 1);
  const most = Math.min(sockets * config.maxHotplugRatio, Math.floor(MAX_VCPUS / perSocket));
  if (config.maxCpuSockets > 0) cpu.maxSockets = Math.max(config.maxCpuSockets, sockets);
  // Sockets that nobody named are no sockets to multiply.
  else if (sockets > 0) cpu.maxSockets = Math.max(most, sockets);
}

function scaledGuest(guest: QuantityValue | undefined, ratio: number): string | undefined {
  const amount = readQuantity(guest);
  return amount && formatQuantity(quantityFromBytes(BigInt(quantityValue(amount)) * BigInt(ratio)));
}

/**
 * The first thing that keeps memory from being plugged up to `maxGuest`, and the field below the spec that says so;
 * undefined when nothing does.
 */
export function memoryHotplugObstacle(
  spec: DeepReadonly<VirtualMachineInstanceSpec>,
  maxGuest: QuantityValue,
): { readonly field: string; readonly message: string } | undefined {
  const { cpu, memory, launchSecurity } = spec.domain;
  const obstacle = (field: string, message: string) => ({ field, message });
  if (cpu?.realtime !== undefined)
    return obstacle('domain.cpu.realtime', 'Memory hotplug is not compatible with realtime VMs');
  if (cpu?.numa?.guestMappingPassthrough !== undefined) {
    return obstacle(
      'domain.cpu.numa.guestMappingPassthrough',
      'Memory hotplug is not compatible with guest mapping passthrough',
    );
  }
  if (launchSecurity !== undefined)
    return obstacle('domain.launchSecurity', 'Memory hotplug is not compatible with encrypted VMs');
  const guest = readQuantity(memory?.guest);
  const most = readQuantity(maxGuest);
  if (guest === undefined || most === undefined)
    return obstacle('domain.memory.guest', 'Guest memory must be configured when memory hotplug is enabled');
  const [block, blockText] = memory?.hugepages?.pageSize === '1Gi' ? [1024 * MIB, '1Gi'] : [2 * MIB, '2Mi'];
  if (compareQuantity(guest, most) > 0)
    return obstacle('domain.memory.guest', 'Guest memory is greater than the configured maxGuest memory');
  if (quantityValue(guest) % block !== 0)
    return obstacle('domain.memory.guest', `Guest memory must be ${blockText} aligned`);
  if (quantityValue(most) % block !== 0)
    return obstacle('domain.memory.maxGuest', `MaxGuest must be ${blockText} aligned`);
  if (spec.architecture !== 'amd64') return obstacle('architecture', 'Memory hotplug is only available for x86_64 VMs');
  if (quantityValue(guest) < MIN_PLUGGABLE_GUEST) {
    return obstacle(
      'domain.memory.guest',
      'Memory hotplug is only available for VMs with at least 1Gi of guest memory',
    );
  }
  return undefined;
}
