/**
 * Whether a launcher Pod asks for what its guest is to get. Nothing else bounds the guest: scheduling, quotas and limit
 * ranges count the Pod, and QEMU takes what the instance says. Pure.
 */

import type { ReadonlyPod } from '@coracle/apimachinery/types/types';
import { amountOf, podRequests } from '@coracle/cluster-rules/placement/pod-requests';
import type { ReadonlyVmi } from '../../kinds/kubevirt.ts';
import type { PodSizing } from '../machine-defaults/cluster-config.ts';
import { dedicatedCpus, guestMemoryRequest, vcpuCount } from './launcher-resources.ts';

export interface ShortfallOptions extends PodSizing {
  /** Bytes of memory that the machine would have. */
  readonly memoryBytes: number;
}

const HUGE_PAGES = 'hugepages-';

/**
 * Why the guest must not be started for this Pod: it asks for less memory, processors or disk than the instance says, or
 * is limited to less memory than the machine has. Undefined when it is large enough. What QEMU needs beside the guest is
 * left out: other controllers than ours may reckon it differently.
 */
export function podShortfall(
  pod: ReadonlyPod,
  { spec }: ReadonlyVmi,
  { memoryBytes, ...sizing }: ShortfallOptions,
): string | undefined {
  const requests = podRequests(pod);
  const asked = spec.domain?.resources;
  const named = (name: string): number | undefined =>
    asked?.requests?.[name] === undefined ? undefined : amountOf(name, String(asked.requests[name]));
  let memory = requests.get('memory') ?? 0;
  for (const [name, amount] of requests) if (name.startsWith(HUGE_PAGES)) memory += amount;
  // Less than the guest's own where the instance itself or the cluster says so: that is how overcommitment is written.
  const needsMemory = named('memory') ?? Number(guestMemoryRequest(spec, sizing));
  if (memory < needsMemory) return `it asks for ${memory} bytes of memory, the instance for ${needsMemory}`;
  const dedicated = dedicatedCpus(spec);
  const milli =
    dedicated === undefined
      ? (named('cpu') ?? Math.floor((vcpuCount(spec) * 1000) / sizing.cpuAllocationRatio))
      : dedicated * 1000;
  const cpu = requests.get('cpu') ?? 0;
  if (cpu < milli) return `it asks for ${cpu}m of a processor, the instance for ${milli}m`;
  const disk = named('ephemeral-storage') ?? 0;
  if ((requests.get('ephemeral-storage') ?? 0) < disk)
    return `it asks for less ephemeral-storage than the instance, which asks for ${disk} bytes`;
  for (const { name, resources } of pod.spec.containers) {
    const limit = name === 'compute' ? resources?.limits?.['memory'] : undefined;
    if (limit !== undefined && amountOf('memory', String(limit)) < memoryBytes)
      return `it is limited to ${String(limit)} of memory, the machine has ${memoryBytes} bytes`;
  }
  return undefined;
}
