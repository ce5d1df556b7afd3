/**
 * The phase of a migration, from its objects: pure (pkg/virt-controller/watch/migration, updateStatus).
 *
 *   "" -> Pending -> Scheduling -> Scheduled -> PreparingTarget -> TargetReady -> Running -> Succeeded | Failed
 *
 * Until Scheduled the controller works alone (a target Pod); then the agents do, and the phase follows what they write
 * into the instance's migration state.
 */

import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import { formatTime } from '@coracle/apimachinery/meta/object';
import { hasEnded, isDeleting } from '@coracle/apimachinery/meta/object-state';
import type { ReadonlyPod } from '@coracle/apimachinery/types/types';
import type { MigrationStatus } from '../../kinds/kinds.ts';
import type { ReadonlyMigration, ReadonlyVmi } from '../../kinds/kubevirt.ts';
import { MIGRATION_TARGET_NODE_LABEL } from '../../rules/launcher/launcher-labels.ts';
import { isLauncherReady } from '../../rules/launcher/launcher-pods.ts';
import { isHandedOffPhase, isUnderWay, phaseOf, stateOf } from './migration-view.ts';

export interface MigrationFacts {
  readonly migration: ReadonlyMigration;
  /** Undefined when there is none. */
  readonly vmi: ReadonlyVmi | undefined;
  readonly target: ReadonlyPod | undefined;
  /** Name of the Pod the guest runs in. */
  readonly sourcePod: string | undefined;
  /** Another unfinished migration holds the instance. */
  readonly blocked: boolean;
  /** A quota stood against the target Pod. */
  readonly quotaExceeded: boolean;
  readonly now: number;
}

export interface NextMigrationStatus {
  readonly status: MigrationStatus;
  readonly event?: { readonly type: 'Normal' | 'Warning'; readonly reason: string; readonly message: string };
}

type Condition = NonNullable<MigrationStatus['conditions']>[number];
type ConditionType = 'migrationAbortRequested' | 'migrationRejectedByResourceQuota';

/** Conditions of the instance that say a change it was migrated for has not come through yet. */
const CHANGES_PENDING: Readonly<Record<string, (status: string) => boolean>> = {
  HotVCPUChange: () => true,
  HotMemoryChange: (status) => status === 'True',
  MigrationRequired: (status) => status === 'True',
};

/** The status the migration should have, and what to tell about it. */
export function nextMigrationStatus(facts: MigrationFacts): NextMigrationStatus {
  const { migration, vmi, now } = facts;
  const status = cloneJson<MigrationStatus>((migration.status ?? {}) as MigrationStatus);
  const event = advance(facts, status);
  if (status.phase !== undefined && status.phase !== migration.status?.phase) {
    status.phaseTransitionTimestamps ??= [];
    if (!status.phaseTransitionTimestamps.some(({ phase }) => phase === status.phase))
      status.phaseTransitionTimestamps.push({ phase: status.phase, phaseTransitionTimestamp: formatTime(now) });
  }
  if (status.phase === 'Pending' && facts.sourcePod !== undefined)
    status.migrationState = { ...status.migrationState, sourcePod: facts.sourcePod };
  const state = stateOf(vmi, migration);
  // The last word about this migration, also after the instance has begun another one.
  if (hasEnded(migration) && state)
    status.migrationState = cloneJson(state) as NonNullable<MigrationStatus['migrationState']>;
  return { status, ...(event && { event }) };
}

/** Changes the phase and the conditions of `status`. */
function advance(facts: MigrationFacts, status: MigrationStatus): NextMigrationStatus['event'] {
  const { migration, vmi, target } = facts;
  const phase = phaseOf(migration);
  const state = stateOf(vmi, migration);
  const fail = (message: string): NextMigrationStatus['event'] => failed(status, message);
  if (hasEnded(migration)) return undefined;
  // Rather than to another node of this cluster, where nobody asked for it to go.
  if (phase === '' && (migration.spec.sendTo ?? migration.spec.receive) != null)
    return fail(
      'Migration failed because guests move between nodes of one cluster only: sendTo and receive are not supported.',
    );
  if (vmi === undefined) return fail('Migration failed because vmi does not exist.');
  if (hasEnded(vmi)) return fail('Migration failed vmi shutdown during migration.');
  if (isDeleting(migration) && !isHandedOffPhase(phase) && !state) {
    addCondition(status, 'migrationAbortRequested', facts.now);
    return fail('Migration failed due to being canceled');
  }
  // A guest that has moved is where it should be, whatever becomes of the Pod.
  const moved = state?.completed === true && state.failed !== true;
  if (!moved && target && hasEnded(target))
    return fail('Migration failed because target pod shutdown during migration');
  if (!moved && isUnderWay(migration) && !target)
    return fail('Migration target pod was removed during active migration.');
  if (isHandedOffPhase(phase) && !state)
    return fail(
      vmi.status?.migrationState === undefined
        ? "VMI's migration state was cleared during the active migration."
        : "VMI's migration state was taken over by another migration job during active migration.",
    );
  if (state?.failed === true) return fail('source node reported migration failed');
  if (isDeleting(migration)) addCondition(status, 'migrationAbortRequested', facts.now);
  return step(facts, status);
}

function failed(status: MigrationStatus, message: string): NextMigrationStatus['event'] {
  status.phase = 'Failed';
  return { type: 'Warning', reason: 'FailedMigration', message };
}

function step(
  { migration, vmi, target, blocked, quotaExceeded, now }: MigrationFacts,
  status: MigrationStatus,
): NextMigrationStatus['event'] {
  const state = stateOf(vmi, migration);
  switch (phaseOf(migration)) {
    case '':
      if (blocked)
        return failed(status, 'VMI is not eligible for migration because another migration job is in progress.');
      status.phase = 'Pending';
      return undefined;
    case 'Pending':
      if (target) status.phase = 'Scheduling';
      else if (quotaExceeded) addCondition(status, 'migrationRejectedByResourceQuota', now);
      return undefined;
    case 'Scheduling':
      dropCondition(status, 'migrationRejectedByResourceQuota');
      if (target && isLauncherReady(target)) status.phase = 'Scheduled';
      return undefined;
    case 'Scheduled':
      if (state?.targetNode && vmi?.metadata.labels?.[MIGRATION_TARGET_NODE_LABEL] === state.targetNode)
        status.phase = 'PreparingTarget';
      return undefined;
    case 'PreparingTarget':
      if (state?.targetNode && state.targetNodeAddress) status.phase = 'TargetReady';
      return undefined;
    case 'TargetReady':
      if (state?.startTimestamp != null) status.phase = 'Running';
      return undefined;
    case 'Running': {
      const pending = vmi?.status?.conditions?.some((c) => CHANGES_PENDING[c.type]?.(c.status) ?? false);
      if (state?.completed !== true || pending) return undefined;
      status.phase = 'Succeeded';
      return { type: 'Normal', reason: 'SuccessfulMigration', message: 'Source node reported migration succeeded' };
    }
    default:
      return undefined;
  }
}

function addCondition(status: MigrationStatus, type: ConditionType, now: number): void {
  if (status.conditions?.some((condition) => condition.type === type)) return;
  const made = { type, status: 'True', lastProbeTime: formatTime(now), lastTransitionTime: null };
  status.conditions = [...(status.conditions ?? []), made as unknown as Condition];
}

function dropCondition(status: MigrationStatus, type: ConditionType): void {
  if (!status.conditions?.some((condition) => condition.type === type)) return;
  status.conditions = status.conditions.filter((condition) => condition.type !== type);
}
