/** Resources a launcher Pod asks of its node: pure arithmetic over the instance's spec. */

import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import {
  compareQuantity,
  formatQuantity,
  quantityFromBytes,
  quantityFromMilli,
  readQuantity,
  wholeUnits,
} from '@coracle/apimachinery/quantity/quantity';
import type { VirtualMachineInstance } from '../../kinds/kubevirt.ts';

const MIB = 1024n * 1024n;

/** Bytes of an amount of any size, rounded up: what no node has is asked for all the same, and stays unschedulable. */
function bytesOf(amount: unknown): bigint {
  const quantity = readQuantity(amount);
  return quantity === undefined ? 0n : wholeUnits(quantity);
}

export interface LauncherResources {
  readonly requests: Record<string, string>;
  readonly limits: Record<string, string>;
  /** Bytes beyond the guest's own memory that QEMU and its launcher need. */
  readonly overheadBytes: bigint;
}

/** Bytes of guest memory; a spec that gives none in any form has 0. */
export function guestMemoryBytes(spec: DeepReadonly<VirtualMachineInstance['spec']>): bigint {
  const { memory, resources } = spec.domain ?? {};
  return bytesOf(memory?.guest ?? resources?.requests?.['memory'] ?? resources?.limits?.['memory']);
}

/** Number of vCPUs of the topology. */
export function vcpuCount(spec: DeepReadonly<VirtualMachineInstance['spec']>): number {
  const cpu = spec.domain?.cpu;
  return Math.max(1, (cpu?.sockets || 1) * (cpu?.cores || 1) * (cpu?.threads || 1));
}

/** Launcher 100, its monitor 25, virtlogd 25, virtqemud 40, QEMU 50, one IO thread 8. */
const FIXED_OVERHEAD = 248n * MIB;
const OVERHEAD_PER_VCPU = 8n * MIB;
const BYTES_PER_PAGE_TABLE_BYTE = 512n;
const PROBE_OVERHEAD = 10n * MIB;
const PROBES_OVERHEAD = 100n * MIB;

/**
 * Page tables, QEMU and the processes beside it, threads, video memory, and what single devices and settings cost (kubevirt
 * pkg/virt-controller/services, GetMemoryOverhead). In bytes.
 */
export function memoryOverhead(spec: DeepReadonly<VirtualMachineInstance['spec']>): bigint {
  const kilobytes = (guestMemoryBytes(spec) + 999n) / 1000n;
  const probes = [spec.livenessProbe, spec.readinessProbe].filter((probe) => probe?.exec !== undefined).length;
  const { devices, launchSecurity } = spec.domain ?? {};
  let bytes = (kilobytes * 1000n) / BYTES_PER_PAGE_TABLE_BYTE + FIXED_OVERHEAD;
  bytes += BigInt(vcpuCount(spec)) * OVERHEAD_PER_VCPU;
  if (devices?.autoattachGraphicsDevice !== false) bytes += 32n * MIB;
  // Two flash chips of the firmware, whole.
  if (spec.architecture === 'arm64') bytes += 128n * MIB;
  // Devices of the host: all memory is locked, and their own beside it.
  if (hasHostDevices(spec)) bytes += 1024n * MIB;
  if (spec.volumes?.some(({ downwardMetrics }) => downwardMetrics !== undefined)) bytes += MIB;
  if (probes > 0) bytes += BigInt(probes) * PROBE_OVERHEAD + PROBES_OVERHEAD;
  if (launchSecurity !== undefined) bytes += 256n * MIB;
  if (devices?.tpm !== undefined && devices.tpm.enabled !== false) bytes += 53n * MIB;
  if (spec.domain?.cpu?.dedicatedCpuPlacement === true || wantsGuaranteed(spec)) bytes += 100n * MIB;
  return bytes;
}

/** The same as a quantity. */
export const overheadText = (spec: DeepReadonly<VirtualMachineInstance['spec']>): string =>
  formatQuantity(quantityFromBytes(memoryOverhead(spec)));

const hasHostDevices = ({ domain }: DeepReadonly<VirtualMachineInstance['spec']>): boolean =>
  [...(domain?.devices?.gpus ?? []), ...(domain?.devices?.hostDevices ?? [])].length > 0 ||
  (domain?.devices?.interfaces?.some(({ sriov }) => sriov !== undefined) ?? false);

/** Its limits are its requests, written out for both resources. */
function wantsGuaranteed({ domain }: DeepReadonly<VirtualMachineInstance['spec']>): boolean {
  const { requests, limits } = domain?.resources ?? {};
  return ['cpu', 'memory'].every((name) => {
    const [request, limit] = [readQuantity(requests?.[name]), readQuantity(limits?.[name])];
    return request !== undefined && limit !== undefined && limit.nano > 0n && compareQuantity(request, limit) === 0;
  });
}

/** The compute container's resources. `cpuAllocationRatio`: vCPUs a core is shared among. */
export function launcherResources(
  spec: DeepReadonly<VirtualMachineInstance['spec']>,
  options: {
    readonly cpuAllocationRatio: number;
    readonly useEmulation: boolean;
    /** The namespace is one whose guests get a limit of processors where they name none. */
    readonly limitsCpu?: boolean;
  },
): LauncherResources {
  const asked = spec.domain?.resources;
  const overheadBytes = memoryOverhead(spec);
  const requests: Record<string, string> = {};
  const limits: Record<string, string> = {};
  for (const [name, value] of Object.entries(asked?.requests ?? {})) requests[name] = String(value);
  for (const [name, value] of Object.entries(asked?.limits ?? {})) limits[name] = String(value);
  requests['cpu'] ??= cpuRequest(spec, options.cpuAllocationRatio);
  const withOverhead = (bytes: bigint): string =>
    formatQuantity(quantityFromBytes(asked?.overcommitGuestOverhead ? bytes : bytes + overheadBytes));
  const requested = requests['memory'];
  requests['memory'] = withOverhead(requested === undefined ? guestMemoryBytes(spec) : bytesOf(requested));
  const limited = limits['memory'];
  if (limited !== undefined) limits['memory'] = withOverhead(bytesOf(limited));
  if (options.limitsCpu) limits['cpu'] ??= String(vcpuCount(spec));
  const dedicated = dedicatedCpus(spec);
  if (dedicated !== undefined) {
    // Whole processors, and as much at most as at least: only then a kubelet gives a Pod processors of its own.
    requests['cpu'] = limits['cpu'] = String(BigInt(dedicated));
    limits['memory'] = requests['memory'];
  }
  requests['ephemeral-storage'] ??= ephemeralRequest(spec, limits['ephemeral-storage']);
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

/** Upstream's 50M for logs and the like, whoever names nothing else; and room for the empty disks that it asks for. */
const BASE_EPHEMERAL = 50_000_000n;

/** Beyond upstream: empty disks count, which lie on the node; never more than the limit beside it. */
function ephemeralRequest(spec: DeepReadonly<VirtualMachineInstance['spec']>, limit: string | undefined): string {
  let bytes = 0n;
  for (const { emptyDisk } of spec.volumes ?? []) if (emptyDisk?.capacity) bytes += bytesOf(String(emptyDisk.capacity));
  if (bytes === 0n) return '50M';
  bytes += BASE_EPHEMERAL;
  return limit !== undefined && bytesOf(limit) < bytes ? limit : formatQuantity(quantityFromBytes(bytes));
}

/** In thousandths as a rule; of more processors than those can count, whole ones. */
function cpuRequest(spec: DeepReadonly<VirtualMachineInstance['spec']>, ratio: number): string {
  const milli = Math.ceil((vcpuCount(spec) * 1000) / ratio);
  return milli <= Number.MAX_SAFE_INTEGER ? `${milli}m` : formatQuantity(quantityFromMilli(BigInt(milli)));
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
