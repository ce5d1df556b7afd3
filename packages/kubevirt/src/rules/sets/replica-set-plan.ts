/** What a VirtualMachineInstanceReplicaSet makes and deletes next (pkg/virt-controller/watch/replicaset): pure. */

import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { isConditionTrue, isDeleting, isFinal } from '@coracle/apimachinery/meta/object-state';
import type { ReadonlyVmi, VirtualMachineInstanceReplicaSet } from '../../kinds/kubevirt.ts';

export interface ReplicaSetPlan {
  /** How many to make. */
  readonly create: number;
  readonly remove: readonly ReadonlyVmi[];
  /** Those that have not ended and are not on their way out. */
  readonly replicas: number;
  readonly readyReplicas: number;
  /** When instances that never ran are replaced; undefined while there are none. Milliseconds. */
  readonly waitMs: number | undefined;
}

/** Instances that one pass makes or deletes at most, as upstream's burst. */
export const BURST = 250;
/** An instance that ended without ever running is replaced no sooner: else one that cannot start is made over and over. */
const REPLACE_AFTER_MS = 10_000;

export const isReady = (vmi: ReadonlyVmi): boolean => isConditionTrue(vmi, 'Ready');

/** Until an instance that has ended may be replaced; 0 when it may. */
function replaceInMs({ status }: ReadonlyVmi, now: number): number {
  const times = status?.phaseTransitionTimestamps ?? [];
  if (times.some(({ phase }) => phase === 'Running')) return 0;
  const ended = times.find(({ phase }) => isFinal(phase))?.phaseTransitionTimestamp;
  const since = ended ? Date.parse(ended) : Number.NaN;
  return Number.isNaN(since) ? 0 : Math.max(0, since + REPLACE_AFTER_MS - now);
}

/** Those that are missed least come first: not running, not ready, and of the rest the youngest. */
function byWorth(a: ReadonlyVmi, b: ReadonlyVmi): number {
  const worth = (vmi: ReadonlyVmi): number => (isReady(vmi) ? 2 : vmi.status?.phase === 'Running' ? 1 : 0);
  const age = (vmi: ReadonlyVmi): string => vmi.metadata.creationTimestamp ?? '';
  return worth(a) - worth(b) || (age(a) < age(b) ? 1 : age(a) > age(b) ? -1 : 0);
}

/** `instances` are those that the set controls. */
export function replicaSetPlan(
  set: DeepReadonly<VirtualMachineInstanceReplicaSet>,
  instances: readonly ReadonlyVmi[],
  now: number,
): ReplicaSetPlan {
  const there = instances.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  const active = there.filter(({ status }) => !isFinal(status?.phase));
  const ended = there.filter(({ status }) => isFinal(status?.phase));
  const counts = { replicas: active.length, readyReplicas: active.filter(isReady).length };
  if (set.spec.paused === true || isDeleting(set)) return { ...counts, create: 0, remove: [], waitMs: undefined };
  const wanted = set.spec.replicas ?? 1;
  const free = Math.max(0, wanted - active.length);
  const waits = ended.map((vmi) => ({ vmi, ms: replaceInMs(vmi, now) })).filter(({ ms }) => ms > 0);
  // One that waits holds the place of its replacement, as far as there is to be one.
  const held = waits.sort((a, b) => a.ms - b.ms).slice(0, free);
  const holders = new Set(held.map(({ vmi }) => vmi));
  const surplus = [...active].sort(byWorth).slice(0, Math.max(0, active.length - wanted));
  return {
    ...counts,
    create: Math.min(BURST, free - held.length),
    remove: [...ended.filter((vmi) => !holders.has(vmi)), ...surplus].slice(0, BURST),
    waitMs: held[0]?.ms,
  };
}
