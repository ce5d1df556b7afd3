/** Resources a launcher Pod asks of its node: pure arithmetic over the instance's spec. */

import {
  compareQuantity,
  formatQuantity,
  quantityFromBytes,
  quantityFromMilli,
  readQuantity,
  wholeUnits,
} from '@coracle/apimachinery/quantity/quantity';
import type { Container } from '@coracle/apimachinery/types/types';
import type { QuantityValue, ReadonlyVmi } from '../../kinds/kubevirt.ts';
import type { PodSizing } from '../machine-defaults/cluster-config.ts';

type Spec = ReadonlyVmi['spec'];

const MIB = 1024n * 1024n;

/** The user of all containers of a launcher. */
export const LAUNCHER_USER = 107;
/** What containers that only bring or show something may do. */
export const CONFINED: NonNullable<Container['securityContext']> = {
  allowPrivilegeEscalation: false,
  capabilities: { drop: ['ALL'] },
  runAsNonRoot: true,
  runAsUser: LAUNCHER_USER,
};

const bytesText = (bytes: bigint): string => formatQuantity(quantityFromBytes(bytes));

/** Bytes of an amount of any size, rounded up: what no node has is asked for all the same, and stays unschedulable. */
function bytesOf(amount: unknown): bigint {
  const quantity = readQuantity(amount);
  return quantity === undefined ? 0n : wholeUnits(quantity);
}

/** Bytes of guest memory; a spec that gives none in any form has 0. */
export function guestMemoryBytes(spec: Spec): bigint {
  const { memory, resources } = spec.domain ?? {};
  return bytesOf(memory?.guest ?? resources?.requests?.['memory'] ?? resources?.limits?.['memory']);
}

/**
 * What the Pod asks for the guest's own memory where the instance does not say: all of it, or less where the cluster
 * overcommits memory. Never less of huge pages, and of a guest with processors of its own.
 */
export function guestMemoryRequest(
  spec: Spec,
  { memoryOvercommit = 100 }: Pick<PodSizing, 'memoryOvercommit'>,
): bigint {
  const isWhole = spec.domain?.memory?.hugepages !== undefined || spec.domain?.cpu?.dedicatedCpuPlacement === true;
  return isWhole ? guestMemoryBytes(spec) : (guestMemoryBytes(spec) * 100n) / BigInt(memoryOvercommit);
}

/** Number of vCPUs of the topology. */
export function vcpuCount(spec: Spec): number {
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
 * pkg/virt-controller/services, GetMemoryOverhead), times the factor of the cluster. In bytes.
 */
export function memoryOverhead(spec: Spec, { overheadRatio = 1 }: Pick<PodSizing, 'overheadRatio'> = {}): bigint {
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
  if (isGuaranteed(spec)) bytes += 100n * MIB;
  bytes += bytesOf(spec.domain?.memory?.reservedOverhead?.addedOverhead);
  // In whole thousands of bytes, as upstream rounds it.
  return bytes + BigInt(Math.trunc(Number((bytes + 999n) / 1000n) * (overheadRatio - 1))) * 1000n;
}

/** The same as a quantity. */
export const overheadText = (spec: Spec, sizing: PodSizing): string => bytesText(memoryOverhead(spec, sizing));

const hasHostDevices = ({ domain }: Spec): boolean =>
  [...(domain?.devices?.gpus ?? []), ...(domain?.devices?.hostDevices ?? [])].length > 0 ||
  (domain?.devices?.interfaces?.some(({ sriov }) => sriov !== undefined) ?? false);

/**
 * Whether its Pod is to be a guaranteed one, with all its containers: processors of its own, or limits of both resources
 * that are its requests. A limit alone is a request as well.
 */
export function isGuaranteed({ domain }: Spec): boolean {
  const { requests, limits } = domain?.resources ?? {};
  if (domain?.cpu?.dedicatedCpuPlacement === true) return true;
  return ['cpu', 'memory'].every((name) => {
    const limit = readQuantity(limits?.[name]);
    const request = readQuantity(requests?.[name]) ?? limit;
    return request !== undefined && limit !== undefined && limit.nano > 0n && compareQuantity(request, limit) === 0;
  });
}

/** Limits that a namespace gives guests which name none themselves. */
export interface NamespaceLimits {
  /** One processor for each vCPU; false when absent. */
  readonly limitsCpu?: boolean;
  /** Memory: so many times what the Pod asks for; no limit when absent. */
  readonly memoryLimitRatio?: number | undefined;
}

/** The compute container's resources; `overheadBytes` is what QEMU and its launcher need beyond the guest's memory. */
export function launcherResources(
  spec: Spec,
  options: PodSizing & NamespaceLimits & { readonly useEmulation: boolean },
) {
  const asked = spec.domain?.resources;
  const overheadBytes = memoryOverhead(spec, options);
  const requests = asText(asked?.requests);
  const limits = asText(asked?.limits);
  requests['cpu'] ??= cpuRequest(spec, options.cpuAllocationRatio);
  const given = bytesOf(requests['memory']) || bytesOf(limits['memory']) || guestMemoryRequest(spec, options);
  const requested = asked?.overcommitGuestOverhead ? given : given + overheadBytes;
  requests['memory'] = bytesText(requested);
  if (limits['memory'] !== undefined) limits['memory'] = bytesText(bytesOf(limits['memory']) + overheadBytes);
  else if (options.memoryLimitRatio !== undefined)
    // A ratio taken from a limit gives that limit again, whatever a division has lost of it.
    limits['memory'] = bytesText(BigInt(Math.trunc(Number(requested) * options.memoryLimitRatio + 0.01)));
  if (options.limitsCpu) limits['cpu'] ??= String(vcpuCount(spec));
  const dedicated = dedicatedCpus(spec);
  if (dedicated !== undefined) {
    // Whole processors, and as much at most as at least: only then a kubelet gives a Pod processors of its own.
    requests['cpu'] = limits['cpu'] = String(BigInt(dedicated));
    limits['memory'] = requests['memory'];
  }
  requests['ephemeral-storage'] ??= ephemeralRequest(spec, limits['ephemeral-storage']);
  const devices = deviceCounts(spec);
  if (!options.useEmulation) devices.set('devices.kubevirt.io/kvm', 1);
  if (hasNetwork(spec)) devices.set('devices.kubevirt.io/tun', 1);
  for (const [name, count] of devices) requests[name] = limits[name] = String(count);
  return { requests, limits, overheadBytes };
}

const asText = (amounts: Readonly<Record<string, QuantityValue>> = {}): Record<string, string> =>
  Object.fromEntries(Object.entries(amounts).map(([name, amount]) => [name, String(amount)]));

/** Upstream's 50M for logs and the like, whoever names nothing else; and room for the empty disks that it asks for. */
const BASE_EPHEMERAL = 50_000_000n;

/** Beyond upstream: empty disks count, which lie on the node; never more than the limit beside it. */
function ephemeralRequest(spec: Spec, limit: string | undefined): string {
  let bytes = 0n;
  for (const { emptyDisk } of spec.volumes ?? []) if (emptyDisk?.capacity) bytes += bytesOf(String(emptyDisk.capacity));
  if (bytes === 0n) return '50M';
  bytes += BASE_EPHEMERAL;
  return limit !== undefined && bytesOf(limit) < bytes ? limit : bytesText(bytes);
}

/** Whether the guest gets a network card at its start, which upstream opens a tap device for. */
const hasNetwork = ({ domain }: Spec): boolean =>
  (domain?.devices?.interfaces?.length ?? 0) > 0 || domain?.devices?.autoattachPodInterface !== false;

/** In thousandths as a rule; of more processors than those can count, whole ones. */
function cpuRequest(spec: Spec, ratio: number): string {
  const milli = Math.ceil((vcpuCount(spec) * 1000) / ratio);
  return milli <= Number.MAX_SAFE_INTEGER ? `${milli}m` : formatQuantity(quantityFromMilli(BigInt(milli)));
}

/** Processors of the host that are the guest's alone, one more where QEMU's own thread has one; undefined when shared. */
export function dedicatedCpus(spec: Spec): number | undefined {
  const cpu = spec.domain?.cpu;
  if (cpu?.dedicatedCpuPlacement !== true) return undefined;
  return vcpuCount(spec) + (cpu.isolateEmulatorThread ? 1 : 0);
}

/** Resource name -> how many: a device of the host is a resource that only some nodes offer. Claimed ones come by DRA. */
function deviceCounts(spec: Spec): Map<string, number> {
  const { gpus = [], hostDevices = [] } = spec.domain?.devices ?? {};
  const counts = new Map<string, number>();
  for (const { deviceName } of [...gpus, ...hostDevices])
    if (deviceName) counts.set(deviceName, (counts.get(deviceName) ?? 0) + 1);
  return counts;
}
