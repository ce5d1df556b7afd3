/** What an instance is to have and its guest has not yet. */

import { conditionOf, isConditionTrue } from '@coracle/apimachinery/meta/object-state';
import { compareQuantity, readQuantity } from '@coracle/apimachinery/quantity/quantity';
import type { ReadonlyVmi } from '../../kinds/kubevirt.ts';

/** True from the hand-over of a migration to the agents until its end. */
export function isMoving({ status }: ReadonlyVmi): boolean {
  const state = status?.migrationState;
  return state !== undefined && state.completed !== true && state.failed !== true;
}

/** Compares the spec of an instance with what its agent reports. What was never meant to change is never pending. */
export function pendingChanges({ spec, status }: ReadonlyVmi) {
  const { cpu, memory } = spec.domain ?? {};
  const topology = status?.currentCPUTopology;
  const count = (of: { readonly sockets?: number; readonly cores?: number; readonly threads?: number }): number =>
    (of.sockets || 1) * (of.cores || 1) * (of.threads || 1);
  const guest = readQuantity(memory?.guest);
  const requested = readQuantity(status?.memory?.guestRequested);
  return {
    vcpus: !!cpu?.maxSockets && topology !== undefined && count(cpu) !== count(topology),
    memory:
      memory?.maxGuest !== undefined &&
      guest !== undefined &&
      requested !== undefined &&
      compareQuantity(guest, requested) !== 0,
  };
}

/** The conditions by which a change is known to be under way. */
export const CHANGE_CONDITIONS = { vcpus: 'HotVCPUChange', memory: 'HotMemoryChange' } as const;

/** True while a condition says that a change waits to be carried. One that failed waits for a restart. */
export const hasPendingCondition = (vmi: ReadonlyVmi): boolean =>
  conditionOf(vmi, CHANGE_CONDITIONS.vcpus) !== undefined || isConditionTrue(vmi, CHANGE_CONDITIONS.memory);
