/** What the rules of migrations read off their objects. */

import { hasEnded } from '@coracle/apimachinery/meta/object-state';
import type { MigrationPhase } from '../../kinds/kinds.ts';
import type { ReadonlyMigration, ReadonlyVmi } from '../../kinds/kubevirt.ts';

/** '' is upstream's unset phase. */
export type Phase = MigrationPhase | '';

export const phaseOf = ({ status }: ReadonlyMigration): Phase => status?.phase ?? '';

/** True from when there is a target Pod until the end. */
export const isUnderWay = (migration: ReadonlyMigration): boolean =>
  !hasEnded(migration) && phaseOf(migration) !== '' && phaseOf(migration) !== 'Pending';

const HANDED_OFF: ReadonlySet<Phase> = new Set(['PreparingTarget', 'TargetReady', 'Running']);
/** True when the agents have been notified. */
export const isHandedOffPhase = (phase: Phase): boolean => HANDED_OFF.has(phase);

/** The instance's migration state, when it is about this migration. */
export const stateOf = (
  vmi: ReadonlyVmi | undefined,
  migration: ReadonlyMigration,
): NonNullable<ReadonlyVmi['status']>['migrationState'] => {
  const state = vmi?.status?.migrationState;
  return state?.migrationUid === migration.metadata.uid ? state : undefined;
};

/** When a phase was entered, milliseconds; undefined when it never was. */
export function enteredAt({ status }: ReadonlyMigration, phase: Phase): number | undefined {
  const stamp = status?.phaseTransitionTimestamps?.find((entry) => entry.phase === phase)?.phaseTransitionTimestamp;
  return stamp ? Date.parse(stamp) : undefined;
}

/** True when the guest has come to the target of a migration for good. */
export const hasMoved = (
  vmi: ReadonlyVmi | undefined,
  state: NonNullable<ReadonlyVmi['status']>['migrationState'],
): boolean =>
  state?.completed === true &&
  state.failed !== true &&
  !!state.targetNode &&
  state.targetNode === vmi?.status?.nodeName;
