/** Which migrations and evictions the updates of running instances need (pkg/virt-controller/watch/workload-updater): pure. */

import { parseGoDuration } from '@coracle/apimachinery/meta/go-duration';
import { hasEnded, isConditionTrue, isDeleting } from '@coracle/apimachinery/meta/object-state';
import type { ReadonlyMigration, ReadonlyVmi } from '../../kinds/kubevirt.ts';
import { NODE_NAME_LABEL, WORKLOAD_UPDATE_ANNOTATION } from '../launcher/launcher-labels.ts';
import { launcherImageOf } from '../machine-defaults/cluster-config.ts';
import { type CarrierFacts, carrierOf } from './carrier.ts';
import { hasPendingCondition, isMoving } from './pending-changes.ts';

/** On an instance whose update is to be taken back. */
export const ABORTION_ANNOTATION = 'kubevirt.io/testWorkloadUpdateMigrationAbortion';

export interface WorkloadUpdateFacts extends CarrierFacts {
  readonly instances: readonly ReadonlyVmi[];
  readonly migrations: readonly ReadonlyMigration[];
  readonly parallelMigrationsPerCluster: number;
  /** Milliseconds since instances were last evicted for an update; Infinity when they never were. */
  readonly sinceEvictionMs: number;
}

export interface WorkloadUpdatePlan {
  /** Instances to make a migration for, as many as may run. */
  readonly migrate: readonly ReadonlyVmi[];
  /** Migrations of updates that nobody wants any more. */
  readonly abort: readonly ReadonlyMigration[];
  /** Instances that cannot move, to be evicted now: the next batch. */
  readonly evict: readonly ReadonlyVmi[];
  /** Instances whose mark is behind. */
  readonly mark: readonly { readonly vmi: ReadonlyVmi; readonly outdated: boolean }[];
  /** How many run in a launcher of another version. */
  readonly outdated: number;
}

/** On an instance whose launcher is of another version. */
export const OUTDATED_LABEL = 'kubevirt.io/outdatedLauncherImage';
const BATCH_SIZE = 10;
const BATCH_INTERVAL_MS = 60_000;

/** True when the launcher of the instance is not the one that new ones get. */
export function isOutdated({ status }: ReadonlyVmi, kubevirt: WorkloadUpdateFacts['kubevirt']): boolean {
  const image = status?.launcherContainerImageVersion;
  return status?.phase === 'Running' && !!image && image !== launcherImageOf(kubevirt);
}

/**
 * False from the write by which a guest is on another node until the image in its status is that of its launcher there: the
 * label of its node is written after both. Without this a guest that has just moved is moved again.
 */
const isSettled = ({ metadata, status }: ReadonlyVmi): boolean =>
  metadata.labels?.[NODE_NAME_LABEL] === status?.nodeName;

/** True when a migration would bring the instance something: a launcher of this version, or what it waits for. */
export const wantsToMove = (vmi: ReadonlyVmi, kubevirt: WorkloadUpdateFacts['kubevirt']): boolean =>
  hasPendingCondition(vmi) || (isOutdated(vmi, kubevirt) && isSettled(vmi));

/** Made here, and not being taken back yet. */
const isForUpdate = (migration: ReadonlyMigration): boolean =>
  migration.metadata.annotations?.[WORKLOAD_UPDATE_ANNOTATION] !== undefined && !isDeleting(migration);
/** Has a target Pod, or is about to: what counts against the limit. */
const isRunning = ({ status }: ReadonlyMigration): boolean => !!status?.phase && status.phase !== 'Pending';

export function workloadUpdatePlan(facts: WorkloadUpdateFacts): WorkloadUpdatePlan {
  const unfinished = facts.migrations.filter((migration) => !hasEnded(migration));
  const of = ({ metadata }: ReadonlyVmi): ReadonlyMigration[] =>
    unfinished.filter((one) => one.metadata.namespace === metadata.namespace && one.spec.vmiName === metadata.name);
  const {
    workloadUpdateMethods = [],
    batchEvictionSize,
    batchEvictionInterval,
  } = facts.kubevirt?.spec?.workloadUpdateStrategy ?? {};
  const methods: readonly string[] = workloadUpdateMethods;
  const migrate: ReadonlyVmi[] = [];
  const evict: ReadonlyVmi[] = [];
  const mark: { vmi: ReadonlyVmi; outdated: boolean }[] = [];
  const abort: ReadonlyMigration[] = [];
  let count = 0;
  for (const vmi of facts.instances) {
    const outdated = isOutdated(vmi, facts.kubevirt);
    if (outdated) count++;
    if (isDeleting(vmi)) continue;
    if (outdated !== (vmi.metadata.labels?.[OUTDATED_LABEL] !== undefined)) mark.push({ vmi, outdated });
    if (vmi.status?.phase !== 'Running') continue;
    const own = of(vmi);
    const isCalledOff = vmi.metadata.annotations?.[ABORTION_ANNOTATION] !== undefined;
    const isWanted = (hasPendingCondition(vmi) || (outdated && methods.includes('LiveMigrate'))) && !isCalledOff;
    // Once the guest is on its target the condition is on its way out: that is no abortion.
    const hasArrived = vmi.status.migrationState?.targetNodeDomainReadyTimestamp != null;
    if (!isWanted && (isCalledOff || !hasArrived)) abort.push(...own.filter(isForUpdate));
    if (own.length > 0 || isMoving(vmi)) continue;
    if (isWanted && wantsToMove(vmi, facts.kubevirt) && carrierOf(vmi, facts) === 'migration') migrate.push(vmi);
    const moves = methods.includes('LiveMigrate') && isConditionTrue(vmi, 'LiveMigratable');
    if (outdated && isSettled(vmi) && methods.includes('Evict') && !moves) evict.push(vmi);
  }
  const free = Math.max(0, facts.parallelMigrationsPerCluster - unfinished.filter(isRunning).length);
  const interval = parseGoDuration(batchEvictionInterval ?? '') ?? BATCH_INTERVAL_MS;
  const batch = facts.sinceEvictionMs < interval ? [] : evict.slice(0, batchEvictionSize ?? BATCH_SIZE);
  return { migrate: migrate.slice(0, free), abort, evict: batch, mark, outdated: count };
}
