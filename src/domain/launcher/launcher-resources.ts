/** Resources a launcher Pod asks of its node: pure arithmetic over the instance's spec. */
import type { VirtualMachineInstance } from '../../api/kinds/kubevirt/kubevirt.ts';
import type { DeepReadonly } from '../../api/meta/object.ts';
import { formatQuantity, quantityFromBytes, quantityToBytes } from '../../api/quantity/quantity.ts';

const MIB = 1024n * 1024n;

export interface LauncherResources {
  readonly requests: Record<string, string>;
  readonly limits: Record<string, string>;
  /** Bytes beyond the guest's own memory that QEMU and its launcher need. */
  readonly overheadBytes: bigint;
}

/** Bytes of guest memory; a spec that gives none in any form has 0. */
export function guestMemoryBytes(spec: DeepReadonly<VirtualMachineInstance['spec']>): bigint {
  const { memory, resources } = spec.domain ?? {};
  const text = memory?.guest ?? resources?.requests?.['memory'] ?? resources?.limits?.['memory'];
  return text === undefined ? 0n : BigInt(quantityToBytes(String(text)));
}

/** Number of vCPUs of the topology. */
export function vcpuCount(spec: DeepReadonly<VirtualMachineInstance['spec']>): number {
  const cpu = spec.domain?.cpu;
  return Math.max(1, (cpu?.sockets || 1) * (cpu?.cores || 1) * (cpu?.threads || 1));
}

/** Page tables, QEMU itself, its threads, video memory: a fixed part, a part per vCPU and a part per guest byte. */
export function memoryOverhead(spec: DeepReadonly<VirtualMachineInstance['spec']>): bigint {
  const guest = guestMemoryBytes(spec);
  return (
    guest / 512n +
    220n * MIB +
    BigInt(vcpuCount(spec)) * 8n * MIB +
    (spec.domain?.devices?.autoattachGraphicsDevice === false ? 0n : 32n * MIB)
  );
}

/** The compute container's resources. `cpuAllocationRatio`: vCPUs a core is shared among. */
export function launcherResources(
  spec: DeepReadonly<VirtualMachineInstance['spec']>,
  options: { readonly cpuAllocationRatio: number; readonly useEmulation: boolean },
): LauncherResources {
  const asked = spec.domain?.resources;
  const overheadBytes = memoryOverhead(spec);
  const requests: Record<string, string> = {};
  const limits: Record<string, string> = {};
  for (const [name, value] of Object.entries(asked?.requests ?? {})) requests[name] = String(value);
  for (const [name, value] of Object.entries(asked?.limits ?? {})) limits[name] = String(value);
  requests['cpu'] ??= `${Math.ceil((vcpuCount(spec) * 1000) / options.cpuAllocationRatio)}m`;
  const withOverhead = (bytes: bigint): string =>
    formatQuantity(quantityFromBytes(asked?.overcommitGuestOverhead ? bytes : bytes + overheadBytes));
  const requested = requests['memory'];
  requests['memory'] = withOverhead(
    requested === undefined ? guestMemoryBytes(spec) : BigInt(quantityToBytes(requested)),
  );
  const limited = limits['memory'];
  if (limited !== undefined) limits['memory'] = withOverhead(BigInt(quantityToBytes(limited)));
  const dedicated = dedicatedCpus(spec);
  if (dedicated !== undefined) {
    // Whole processors, and as much at most as at least: only then a kubelet gives a Pod processors of its own.
    requests['cpu'] = limits['cpu'] = String(dedicated);
    limits['memory'] = requests['memory'];
  }
  requests['ephemeral-storage'] ??= '50M';
  if (!options.useEmulation) {
    requests['devices.kubevirt.io/kvm'] = '1';
    limits['devices.kubevirt.io/kvm'] = '1';
  }
  for (const [name, count] of deviceCounts(spec)) {
    requests[name] = String(count);
    limits[name] = String(count);
  }
  return { requests, limits, overheadBytes };
}

/** Processors of the host that are the guest's alone, one more where QEMU's own thread has one; undefined when shared. */
export function dedicatedCpus(spec: DeepReadonly<VirtualMachineInstance['spec']>): number | undefined {
  const cpu = spec.domain?.cpu;
  if (cpu?.dedicatedCpuPlacement !== true) return undefined;
  return vcpuCount(spec) + (cpu.isolateEmulatorThread ? 1 : 0);
}

/** Resource name -> how many: a device of the host is a resource that only some nodes offer. Claimed ones come by DRA. */
function deviceCounts(spec: DeepReadonly<VirtualMachineInstance['spec']>): ReadonlyMap<string, number> {
  const { gpus = [], hostDevices = [] } = spec.domain?.devices ?? {};
  const counts = new Map<string, number>();
  for (const { deviceName } of [...gpus, ...hostDevices])
    if (deviceName) counts.set(deviceName, (counts.get(deviceName) ?? 0) + 1);
  return counts;
}
