/** What an instance is to have and its guest has not yet. */

import { compareQuantity, readQuantity } from '@coracle/apimachinery/quantity/quantity';
import type { ReadonlyVmi } from '../../kinds/kubevirt.ts';

export interface PendingChanges {
  readonly vcpus: boolean;
  readonly memory: boolean;
}

/** True from the hand-over of a migration to the agents until its end. */
export function isMoving({ status }: ReadonlyVmi): boolean {
  const state = status?.migrationState;
  return state !== undefined && state.completed !== true && state.failed !== true;
}

/** Compares the spec of an instance with what its agent reports. What was never meant to change is never pending. */
export function pendingChanges({ spec, status }: ReadonlyVmi): PendingChanges {
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
export const hasPendingCondition = ({ status }: ReadonlyVmi): boolean =>
  (status?.conditions ?? []).some(
    ({ type, status: value }) =>
      type === CHANGE_CONDITIONS.vcpus || (type === CHANGE_CONDITIONS.memory && value === 'True'),
  );
