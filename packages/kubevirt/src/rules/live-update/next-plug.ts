/** What the agent may plug into its guest now. */

import { conditionOf } from '@coracle/apimachinery/meta/object-state';
import { quantityValue, readQuantity } from '@coracle/apimachinery/quantity/quantity';
import type { ReadonlyPod } from '@coracle/apimachinery/types/types';
import type { ReadonlyVmi } from '../../kinds/kubevirt.ts';
import type { MachinePlan } from '../machine/machine-plan.ts';
import type { PodSizing } from '../machine-defaults/cluster-config.ts';
import { coversInstance } from './pod-resize.ts';

export interface NextPlug {
  /** Sockets the guest is to have; absent when it has them. */
  readonly sockets?: number;
  /** Bytes of pluggable memory the guest is to take; absent when it has been asked already. */
  readonly requestedBytes?: number;
  /** What the guest's machine has no room for. */
  readonly impossible?: { readonly vcpus?: string; readonly memory?: string };
}

/**
 * Compares the spec of an instance with the machine its guest has. Nothing while the launcher Pod has not been given what
 * the spec needs; memory that is to be given back needs nothing.
 */
export function nextPlug(
  { spec, status }: ReadonlyVmi,
  pod: ReadonlyPod,
  { plan, sizing }: { readonly plan: MachinePlan; readonly sizing: PodSizing },
): NextPlug {
  const { cpu, memory } = spec.domain;
  const sockets = cpu?.maxSockets ? cpu.sockets || 1 : plan.cpu.sockets;
  const guest = memory?.maxGuest === undefined ? undefined : readQuantity(memory.guest);
  const requested = readQuantity(status?.memory?.guestRequested);
  // A plan holds whole mebibytes: what was never changed is not compared with it.
  const isChanged = guest !== undefined && requested !== undefined && guest.nano !== requested.nano;
  const extra = isChanged ? quantityValue(guest) - plan.memoryBytes : 0;
  const isFailed = conditionOf({ status }, 'HotMemoryChange')?.status === 'False';
  const { requestedBytes = 0, bytes: most = 0 } = plan.hotMemory ?? {};
  const more = {
    vcpus: sockets > plan.cpu.sockets,
    memory: isChanged && !isFailed && extra !== requestedBytes,
  };
  if (!more.vcpus && !more.memory) return {};
  const isLess = !more.vcpus && extra < requestedBytes;
  if (!isLess && !coversInstance(pod, { ...EMPTY, spec }, sizing)) return {};
  const impossible: { vcpus?: string; memory?: string } = {};
  const { maxSockets = plan.cpu.sockets } = plan.cpu;
  if (more.vcpus && sockets > maxSockets)
    impossible.vcpus = `the machine of this guest has room for ${maxSockets} sockets, not for ${sockets}`;
  if (more.memory && (extra < 0 || extra > most))
    impossible.memory = 'the machine of this guest has no room for that much memory';
  return {
    ...(more.vcpus && impossible.vcpus === undefined && { sockets }),
    ...(more.memory && impossible.memory === undefined && { requestedBytes: extra }),
    ...(Object.keys(impossible).length > 0 && { impossible }),
  };
}

const EMPTY = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachineInstance', metadata: {} } as const;
