/** The status of a sync, changed in place: stages, conditions, times. */

import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import { formatTime } from '@coracle/apimachinery/meta/object';
import type { ErrorSourceRef, StageStatus, SyncCondition, SyncError, SyncStatus } from '../kinds/kinds.ts';
import { shownErrors, summaryOf } from './sync-error.ts';

export type StageName = 'source' | 'rendering' | 'sync';

/** Where a commit comes from, as a stage shows it. */
export type StageOrigin = Pick<StageStatus, 'gitStatus' | 'ociStatus' | 'helmStatus'>;

export interface StageOutcome {
  readonly origin: StageOrigin;
  readonly commit?: string;
  readonly errors?: readonly SyncError[];
  /** Of rendering. */
  readonly message?: string;
}

const REFS: Readonly<Record<StageName, ErrorSourceRef>> = {
  rendering: 'status.rendering.errors',
  source: 'status.source.errors',
  sync: 'status.sync.errors',
};
const STAGES: readonly StageName[] = ['rendering', 'source', 'sync'];

/** Says what became of a stage. `now` in milliseconds. */
export function setStage(
  status: SyncStatus,
  name: StageName,
  { origin, commit, errors = [], message }: StageOutcome,
  now: number,
): void {
  const shown = shownErrors(errors);
  const before = status[name];
  const kept = commit ?? before?.commit;
  const stage: StageStatus = {
    ...origin,
    ...(kept !== undefined && { commit: kept }),
    ...(message !== undefined && { message }),
    ...(shown.length > 0 && { errors: shown }),
    errorSummary: summaryOf(errors, shown.length),
  };
  const { lastUpdate, ...old } = before ?? {};
  status[name] = {
    ...stage,
    lastUpdate: lastUpdate !== undefined && deepEqual(old, stage) ? lastUpdate : formatTime(now),
  };
}

/** Takes the errors of a stage off when it has none any more. */
const errorRefs = (status: SyncStatus): ErrorSourceRef[] =>
  STAGES.filter((name) => (status[name]?.errorSummary?.totalCount ?? 0) > 0).map((name) => REFS[name]);

/** Sets a condition; its times move as upstream's do. */
export function setCondition(
  status: SyncStatus,
  wanted: Omit<SyncCondition, 'lastUpdateTime' | 'lastTransitionTime'>,
  now: number,
): void {
  const conditions = status.conditions ?? [];
  const before = conditions.find(({ type }) => type === wanted.type);
  const { lastUpdateTime, lastTransitionTime, ...old } = before ?? ({} as Partial<SyncCondition>);
  if (before && deepEqual(old, wanted)) return;
  const at = formatTime(now);
  const condition: SyncCondition = {
    ...wanted,
    lastUpdateTime: at,
    lastTransitionTime: before?.status === wanted.status && lastTransitionTime !== undefined ? lastTransitionTime : at,
  };
  // One that has stopped to work on a commit says nothing of a sync under way.
  const drops =
    (wanted.type === 'Reconciling' || wanted.type === 'Stalled') &&
    wanted.status === 'True' &&
    before?.status !== 'True';
  status.conditions = (
    before ? conditions.map((one) => (one === before ? condition : one)) : [...conditions, condition]
  ).filter(({ type }) => !(drops && type === 'Syncing'));
}

/** Takes a condition off. */
export function removeCondition(status: SyncStatus, type: SyncCondition['type']): void {
  if (status.conditions?.some((one) => one.type === type))
    status.conditions = status.conditions.filter((one) => one.type !== type);
}

export interface SyncProgress {
  readonly isWorking: boolean;
  readonly reason: 'Source' | 'Rendering' | 'Sync';
  readonly message: string;
  readonly commit: string;
}

/** Condition Syncing, with where its errors are. */
export function setSyncing(
  status: SyncStatus,
  { isWorking, reason, message, commit }: SyncProgress,
  now: number,
): void {
  const refs = errorRefs(status);
  const counts = STAGES.map((name) => status[name]?.errorSummary?.totalCount ?? 0);
  const total = counts.reduce((sum, count) => sum + count, 0);
  setCondition(
    status,
    {
      type: 'Syncing',
      status: isWorking ? 'True' : 'False',
      reason,
      message,
      commit,
      ...(refs.length > 0 && { errorSourceRefs: refs }),
      errorSummary: { totalCount: total, truncated: false, errorCountAfterTruncation: total },
    },
    now,
  );
}

/** True when all stages have one commit and no error. */
export const isSynced = (status: SyncStatus, commit: string): boolean =>
  STAGES.every((name) => status[name]?.commit === commit && (status[name]?.errorSummary?.totalCount ?? 0) === 0);
